// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/host/host.h"

// scankit.module.yaml: what the maintainer of a package declares about its modules. A stranger wrote it: it is
// data, every value is checked here, and nothing that it names is run because it names it.
namespace scankit::declared {

inline constexpr const char* kModuleFile = "scankit.module.yaml";
inline constexpr int kModuleSchema = 1;

struct DeclaredModule {
  std::string name;                  // "my_ext._C"
  std::vector<std::string> imports;  // what must be importable with it: "my_ext.ops"
  bool operator==(const DeclaredModule&) const = default;
};

struct ModuleFile {
  std::string file;  // as messages call it
  std::string distribution, documentation;
  std::vector<DeclaredModule> modules;
  std::vector<std::pair<std::string, std::string>>
      variables;                  // of its build; each name passed is_build_switch()
  std::string least_torch;        // "2.4"; "" for any
  std::optional<bool> isolation;  // of its build; unset: not declared
  std::string test_file;          // relative to the project, no ".." in it; or
  std::vector<std::string> test_imports;
};

// Errc::Malformed with line and column; Errc::Unsupported for a newer schema. `name` is what messages call it.
Result<ModuleFile> parse_module_file(std::string_view text, const std::string& name);

// That of a directory of sources, nothing if it has none. A link that leads out of the directory is an Error, and so
// is a smoke test that is missing or lies outside.
Result<std::optional<ModuleFile>> read_module_file(const Host& host, const std::string& folder);

// Everything that must be importable after an installation, without repetitions: the modules, their imports, and the
// imports of the smoke test.
std::vector<std::string> imports_of(const ModuleFile& file);

// Whether a file may set this variable for a build: a switch or a number that setup.py files read, by the list and the
// endings in variables.cc. Nothing that leads the build, the installer or the loader elsewhere.
bool is_build_switch(std::string_view name);
// Words, numbers and lists, as "8.0;9.0+PTX": no path, no quotes, nothing that a shell expands.
bool is_switch_value(std::string_view value);
// "MAX_JOBS, TORCH_CUDA_ARCH_LIST, ... and names that end with _FORCE_BUILD, ...", for messages and the documentation.
std::string build_switches_in_words();

}  // namespace scankit::declared
