// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "doctor/base/result.h"

namespace scankit::validate {

// The paths of the written files. They must exist as long as children run.
struct Harness {
  std::string script;       // the file that Python is to run
  std::string pytest_file;  // a script: runs a pytest file for a limited time
  std::string guard;  // the library to preload: bands around what torch allocates on the CPU (guard/guard.cc)
};
// Writes the embedded harness into `directory`.
Result<Harness> write_harness(const std::string& directory);

}  // namespace scankit::validate
