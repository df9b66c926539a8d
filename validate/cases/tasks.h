// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "validate/run/protocol.h"
#include "validate/run/run.h"

namespace scankit::validate {

// Of a device with or without its way ("cuda:0+graph").
inline bool on_cpu(const std::string& device) { return device.starts_with("cpu"); }

// What the children of a run do. The tasks point into `request`, which must outlive them.
// One case after the other on all devices and in all ways: the harness computes the exact result once for
// them all.
std::vector<Task> tasks_of(const ValidateRequest& request);
// On each GPU, the cases with bands around what lies on it. Torch cannot go back from another allocator to
// its own, and graphs and timing need that one: children of their own.
std::vector<Task> banded_tasks_of(const ValidateRequest& request);

}  // namespace scankit::validate
