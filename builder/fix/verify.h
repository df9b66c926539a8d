// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <string>

#include "doctor/base/result.h"

namespace scankit {

// Loads the file alone, in a child of the environment's Python; torch is imported first only if the module
// is linked with it. Shows a wrong glibc, a wrong Python ABI or a missing entry point, before anything in
// the environment changes.
Result<void> verify_loads(const std::string& python, const std::string& module, const std::string& file,
                          bool with_torch);

// Runs `import torch; import MODULE` as the user would, in a child. Asserts that `__file__` is `expected` and
// that the forward gives the numbers of the recurrence or of the convolution, on the CPU and, if torch sees
// one, on the GPU. `extra_path` is put in front of sys.path, for a directory that is on no path yet; "" for
// none. Errc::Conflict: another file was imported. Errc::ToolFailed: the import failed, hung or crashed.
// Errc::Malformed: wrong numbers.
Result<void> verify_import(const std::string& python, const std::string& module, const std::string& expected,
                           const std::string& extra_path);

// Runs the statement, such as "from mamba_ssm import Mamba", in a fresh interpreter.
Result<void> verify_statement(const std::string& python, const std::string& statement);

}  // namespace scankit
