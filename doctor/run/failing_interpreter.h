// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "doctor/run/processes.h"

namespace scankit {

// The interpreter that a failure is about, among those that ran and those that the output names: the one whose
// site-packages the last traceback is in; else the one that was started first. Nothing if none is known or
// none exists any more. Interpreters of a container are left out.
std::optional<SeenInterpreter> failing_interpreter(const std::string& output,
                                                   const std::vector<SeenInterpreter>& seen);

// "torchvision._C" for ".../site-packages/torchvision/_C.so"; "" for a file that is in no directory of
// packages, or whose name cannot be imported.
std::string module_of_file(const std::string& file);

// The modules that a process probably died in: that of `crashed_in` (a file's name), else the last ones
// that were mapped. Paths, at most three.
std::vector<std::string> modules_at_death(const std::string& crashed_in,
                                          const std::vector<SeenInterpreter>& seen);

}  // namespace scankit
