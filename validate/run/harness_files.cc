// SPDX-License-Identifier: Apache-2.0
#include "validate/run/harness_files.h"

#include <string_view>

#include "doctor/base/files.h"

// The harness is embedded in the executable (the build makes the two symbols of each file) and
// written into a temporary directory for each run: scankit is one file, and installs nothing into
// the user's Python.
#define HARNESS(name) extern "C" const char scankit_harness_##name[], scankit_harness_##name##_end[];
#include "validate/harness/files.def"
#undef HARNESS
extern "C" const char scankit_guard[], scankit_guard_end[];

namespace scankit::validate {
namespace {

struct Embedded {
  std::string_view name;
  const char *begin, *end;
};
constexpr Embedded kFiles[] = {
#define HARNESS(name) {#name, scankit_harness_##name, scankit_harness_##name##_end},
#include "validate/harness/files.def"
#undef HARNESS
};

// A start script in a directory of its own. Python puts the script's directory into sys.path[0], so that
// neither the current directory nor a name of the harness can shadow the user's modules: the package is
// the only other thing there.
constexpr std::string_view kStart = "from scankit_harness import main\nmain.main()\n";

}  // namespace

Result<Harness> write_harness(const std::string& directory) {
  const std::string package = path_join(directory, "scankit_harness");
  SCANKIT_CHECK(make_directories(package));
  for (const Embedded& file : kFiles) {
    const std::string path = path_join(package, std::string(file.name) + ".py");
    SCANKIT_CHECK(write_file_atomically(path, {file.begin, static_cast<std::size_t>(file.end - file.begin)}));
  }
  Harness harness{path_join(directory, "scankit_harness_start.py"), path_join(package, "pytest_file.py"),
                  path_join(directory, "scankit_guard.so")};
  SCANKIT_CHECK(write_file_atomically(harness.script, kStart));
  SCANKIT_CHECK(write_file_atomically(
      harness.guard, {scankit_guard, static_cast<std::size_t>(scankit_guard_end - scankit_guard)}));
  return harness;
}

}  // namespace scankit::validate
