// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "doctor/base/files.h"
#include "doctor/model/finding.h"
#include "doctor/model/loader_rules.h"
#include "doctor/model/snapshot.h"

// What several checks ask of a snapshot. The results carry the JSON pointers that evidence needs.
namespace scankit::checks {

// One copy of a module and its place in the snapshot. It points into the snapshot, which must outlive it.
struct Copy {
  const Extension* extension;
  std::string pointer;  // "/extensions/value/3"
  const Extension& operator*() const { return *extension; }
  const Extension* operator->() const { return extension; }
  // Evidence for a field of this copy, or for a field of entry `i` of one of its lists.
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
// For Check::not_applicable: no module under diagnosis is installed, or there is not even a file of one.
// "" if there is.
Message no_module_installed(const Snapshot& snapshot);
Message no_copy_found(const Snapshot& snapshot);
std::optional<Copy> selected_copy(const Snapshot& snapshot, const std::string& module);

// Whether import would take the file by its name: the last part of the module's name and one of the
// interpreter's suffixes.
bool suffix_fits(const Snapshot& snapshot, const Extension& extension);
// What import would stumble over in this file, in a few words; "" if the files say that it loads. Nothing
// if they do not say.
std::optional<Message> static_obstacle(const Snapshot& snapshot, const Extension& extension);

// Indices of the importers that cannot work without the module. A package that guards the import treats
// the module as optional, unless the module is its own.
std::vector<std::size_t> needing_importers(const Snapshot& snapshot, const std::string& module);
// Whether the file is on the import path on purpose: in a directory of the environment, or in the current
// one if somebody needs it.
bool is_meant_for_import(const Snapshot& snapshot, const Extension& extension);
// Whether the importer is a file of the current directory that nobody installed: a checkout or a
// test. The user's own program, which is directly in that directory and imports the module when it
// starts, is not meant.
bool is_only_nearby(const Snapshot& snapshot, const Importer& importer);
bool was_asked_for(const Snapshot& snapshot, const std::string& module);
// The package of Python files that the user has named; nullptr if the name is not one.
const AskedPackage* asked_package(const Snapshot& snapshot, const std::string& module);

// The installed package whose scankit.module.yaml declares this module, or nullptr.
const DeclaredPackage* declaring_package(const Snapshot& snapshot, const std::string& module);

bool is_bundled_module(std::string_view module);  // scankit carries a module of that name
// The repairs of a module whose file is useless here: scankit's own module if it works here, else
// `otherwise` as advice.
std::vector<Fix> module_fixes(const Snapshot& snapshot, const std::string& module, const Message& otherwise);

// The same for a file that must be built again. They name its distribution, so that the report can print
// the installer's own command. `environment` is passed to the set-up script (TORCH_CUDA_ARCH_LIST).
// `otherwise` is used if the file belongs to no distribution.
std::vector<Fix> rebuild_fixes(const Snapshot& snapshot, const Copy& copy, const Message& otherwise,
                               std::vector<std::pair<std::string, std::string>> environment = {});
// A distribution built again from its sources: with the switches that its maintainer declares, or after torch where the
// installed one is older than declared. Empty where nobody could: conda's, or one without a version and sources.
std::vector<Fix> rebuilds_of(const Snapshot& snapshot, const Distribution& distribution,
                             std::vector<std::pair<std::string, std::string>> environment = {});
// The same for a file that is not what its distribution installed: if it came as a binary (conda),
// reinstalling the same release restores it.
std::vector<Fix> restore_fixes(const Snapshot& snapshot, const Copy& copy, const Message& otherwise);

// The import that decides: the one after torch if there is one, else the bare one; nullptr if
// none was made.
const Observation* deciding_import(const Snapshot& snapshot, const std::string& module);

// The demangled name, with std::string written as users write it.
std::string readable(const MissingSymbol& symbol);

using SymbolTest = std::function<bool(const MissingSymbol&)>;
// Evidence for every missing symbol for which `fits` is true.
std::vector<Evidence> symbol_evidence(const Copy& copy, const SymbolTest& fits);

}  // namespace scankit::checks
