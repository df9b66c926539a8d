// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/model/snapshot.h"

// A target that is not the machine at hand: GPUs and a driver as the user describes them.
namespace scankit {

struct TargetDescription {
  std::vector<std::string> gpus;  // "sm_90"; "none" for a machine without one
  std::string driver;             // "570.86"; "" leaves what was seen
  bool empty() const { return gpus.empty() && driver.empty(); }
};

// What is wrong with a name, with the form that is expected; "" where nothing is.
std::string gpu_name_problem(const std::string& name);
std::string driver_version_problem(const std::string& version);

// Puts the described parts in the place of the observed ones and notes in `described` that it did. The names
// have passed the functions above.
void describe_target(const TargetDescription& target, Snapshot& snapshot);

}  // namespace scankit
