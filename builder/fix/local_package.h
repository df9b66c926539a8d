// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/declared/module_file.h"
#include "doctor/host/host.h"
#include "doctor/model/finding.h"

// A package that the user has as a wheel or as sources (`fix --wheel`, `fix --from-source`). No index is asked for it.
// What is decided here is decided before anything is written, and nothing of the package is run for it.
namespace scankit::fix {

// A compiled module of a wheel, and where its file is below the directory that the wheel is installed into.
struct WheelModule {
  std::string module;  // "my_ext._C"
  std::string file;    // "my_ext/_C.cpython-311-x86_64-linux-gnu.so"
  std::string sha256 = {};
  bool operator==(const WheelModule&) const = default;
};
// "import torch, my_ext._C"
std::string import_of(const std::vector<WheelModule>& modules);

// "import torch, my_ext._C, my_ext.ops": all that the file declares.
std::string import_of(const declared::ModuleFile& file);

// The smoke test that a wheel's scankit.module.yaml declares and the wheel contains.
struct WheelTest {
  std::string file;  // below site-packages: "my_ext/tests/smoke.py"
  std::string sha256;
};

struct LocalWheel {
  std::string path;           // absolute
  std::string name, version;  // of its file name
  std::vector<WheelModule> modules;
  std::optional<declared::ModuleFile> declared = {};  // its scankit.module.yaml
  std::optional<WheelTest> test = {};
};

// Errc::InvalidArgument if the file is no wheel. Errc::Unsupported if it cannot work for this Python: its tags do not
// fit, or one of its modules would not load or has no code for the GPUs here.
Result<LocalWheel> examine_wheel(const std::string& python, const std::string& file);

// The one wheel of a directory that a build has written to.
Result<std::string> built_wheel(const std::string& folder);
// Where it stays, FOLDER/HASH/NAME.whl: pip and uv record the path that a package came from, and a later repair
// installs it from there again. HASH is that of its bytes: another build of the same release does not replace it.
Result<std::string> place_of_wheel(const std::string& wheel, const std::string& folder);
// Copies it there; false if the same bytes were there before.
Result<bool> keep_wheel(const std::string& wheel, const std::string& place);
// Removes it, and the directories above it as far as they are empty then.
void forget_wheel(const std::string& place);

struct LocalSources {
  std::string folder;              // absolute
  bool isolated = false;           // the build needs no torch
  std::vector<std::string> tools;  // that the build needs and the environment lacks
  std::vector<std::pair<std::string, std::string>> environment;  // of the build: CUDA_HOME, MAX_JOBS, ...
  std::optional<declared::ModuleFile> declared;                  // their scankit.module.yaml
};

// Sets variables of this process, for what is asked about a build and for the build itself, and puts the old ones back.
class WithVariables {
 public:
  explicit WithVariables(const std::vector<std::pair<std::string, std::string>>& variables);
  WithVariables(const WithVariables&) = delete;
  WithVariables& operator=(const WithVariables&) = delete;
  ~WithVariables();

 private:
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

// Errc::InvalidArgument if the directory builds no Python package. Errc::Unsupported if its build would fail here, as
// `scankit doctor --sources` says, also with the variables that scankit sets for it.
Result<LocalSources> examine_sources(const Host& host, const std::string& python, const std::string& folder);

// What the build is to be told: the CUDA toolkit of torch's major version, the architectures of the GPUs here, as many
// compilers as memory allows, and the switches by which a setup.py builds its CUDA part. Nothing that the user
// has set in the environment of `host`.
std::vector<std::pair<std::string, std::string>> build_variables(const Host& host, const Report& preflight);

// Puts the variables that scankit.module.yaml declares in the place of those that scankit chose. One that the user has set
// stays, and of two numbers of compilers the smaller one counts: what memory allows is known here.
void take_declared_variables(const Host& host, const declared::ModuleFile& file,
                             std::vector<std::pair<std::string, std::string>>& variables);

// Errc::Malformed if a wheel of that name is not the one that the file is about.
Result<void> check_declared_name(const declared::ModuleFile& file, const std::string& wheel);

// The first error of the report that is about the build of its sources; nullptr if there is none.
const Finding* build_error(const Report& preflight);

}  // namespace scankit::fix
