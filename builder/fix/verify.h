// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <string>

#include "doctor/base/result.h"

namespace scankit {

// Loads the file alone, without torch unless it is linked with it, in a child of the environment's Python:
// glibc floor, Python ABI, entry point. Cheap, and before anything in the environment has changed.
Result<void> verify_loads(const std::string& python, const std::string& module, const std::string& file,
                          bool with_torch);

// `import torch; import MODULE` as the user would, in a child; asserts that `__file__` is `expected` and that
// its forward gives the numbers of the recurrence or the convolution, on the CPU and, where torch sees a GPU,
// there. `extra_path` is put before sys.path (for a folder that is on no path yet). Errc::Conflict: another
// file was imported; Errc::ToolFailed: the import failed, hung or crashed; Errc::Malformed: wrong numbers.
Result<void> verify_import(const std::string& python, const std::string& module, const std::string& expected,
                           const std::string& extra_path);

// The statement in a fresh interpreter, with nothing imported before it: "from mamba_ssm import Mamba".
Result<void> verify_statement(const std::string& python, const std::string& statement);

}  // namespace scankit
