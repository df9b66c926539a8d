// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "doctor/base/files.h"
#include "doctor/model/finding.h"
#include "doctor/model/why_missing.h"

// What several checks ask of a snapshot, with the JSON pointers that evidence needs.
namespace scankit {

// One copy of a module, and where it stands in the snapshot.
struct Copy {
  const Extension* extension;
  std::string pointer;  // "/extensions/value/3"
  const Extension& operator*() const { return *extension; }
  const Extension* operator->() const { return extension; }
  Evidence at(const std::string& field, std::string value) const {
    return {pointer + "/" + field, std::move(value)};
  }
  Evidence at(const std::string& list, std::size_t i, const std::string& field, std::string value) const {
    return at(list + "/" + std::to_string(i) + (field.empty() ? "" : "/" + field), std::move(value));
  }
};

std::vector<Copy> copies(const Snapshot& snapshot);
std::vector<Copy> selected_copies(const Snapshot& snapshot);  // those that import would take
std::vector<Copy> whole_copies(const Snapshot& snapshot);     // selected, and an ELF file that could be read
std::vector<Copy> resolved_copies(const Snapshot& snapshot);  // selected, and the closure was walked
// Why a check of installed modules does not apply: there is
// none, or not even a file of one. "" where there is.
std::string no_module_installed(const Snapshot& snapshot);
std::string no_copy_found(const Snapshot& snapshot);
std::optional<Copy> selected_copy(const Snapshot& snapshot, const std::string& module);

// Import takes a file whose name is the module's last part and
// one of the interpreter's suffixes, nothing else.
bool suffix_fits(const Snapshot& snapshot, const Extension& extension);
// What import would meet in this file, in a word or two; "" where the files say that it loads.
// Nothing where they do not say.
std::optional<std::string> static_obstacle(const Snapshot& snapshot, const Extension& extension);

// "x86_64", from the interpreter's own tag: a 32-bit or emulated one may differ from the kernel's machine.
std::string interpreter_machine(const Snapshot& snapshot);

// Importers that cannot do without the module. A package that guards the import and is not the module's own
// home treats it as optional.
std::vector<std::size_t> needing_importers(const Snapshot& snapshot, const std::string& module);
// It lies on the import path: in a folder of the environment, or in the current one and somebody needs it.
bool is_meant_for_import(const Snapshot& snapshot, const Extension& extension);
// A file of the current folder that nothing installed: a checkout, or a test. Not the user's own program,
// which is a file of that folder itself that imports the module as it starts.
bool is_only_nearby(const Snapshot& snapshot, const Importer& importer);
bool was_asked_for(const Snapshot& snapshot, const std::string& module);
// A package of Python files that the user named; nullptr where the name is not one.
const AskedPackage* asked_package(const Snapshot& snapshot, const std::string& module);

bool is_bundled_module(std::string_view module);  // scankit carries one of that name
// The repairs of a module whose file is of no use here.
std::vector<Fix> module_fixes(const Snapshot& snapshot, const std::string& module,
                              const std::string& otherwise);

// The same where the file must be made again: its distribution is named, so that the report can print the
// installer's own command. `environment` goes to the set-up script (TORCH_CUDA_ARCH_LIST). `otherwise` where
// no distribution owns the file.
std::vector<Fix> rebuild_fixes(const Snapshot& snapshot, const Copy& copy, const std::string& otherwise,
                               std::vector<std::pair<std::string, std::string>> environment = {});
// The same where the file is not what its distribution brought: the same release, installed again, brings it
// back where it came as a binary (conda).
std::vector<Fix> restore_fixes(const Snapshot& snapshot, const Copy& copy, const std::string& otherwise);

// The import that decides: after torch where there is one, else bare. nullptr where none was made.
const Observation* deciding_import(const Snapshot& snapshot, const std::string& module);

// The demangled name with std::string written as the user writes it.
std::string readable(const MissingSymbol& symbol);

using SymbolTest = std::function<bool(const MissingSymbol&)>;
// Evidence for every missing symbol that fits, with its place in the list.
std::vector<Evidence> symbol_evidence(const Copy& copy, const SymbolTest& fits);

}  // namespace scankit
