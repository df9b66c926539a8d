// SPDX-License-Identifier: Apache-2.0
#include "validate/run/harness_files.h"

#include <string_view>

#include "doctor/base/files.h"

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

// A script of its own, so that neither the current folder nor a name of ours stands in front of the user's
// modules: sys.path[0] is the folder of this file, and the only other thing in it is the package.
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
