// SPDX-License-Identifier: Apache-2.0
#pragma once
// Selective scan on the CPU: what the bindings call. Sequential in length, kLanes channels a vector, one task
// a channel tile; a task's arithmetic does not depend on which thread runs it, so neither do the results.
#include "kernels/selective_scan/params.h"

namespace scankit::selective_scan {

// Null, or why it failed (no memory). A backward without x computes the states again.
const char* cpu_forward(const Forward& scan);
const char* cpu_backward(const Backward& scan);
const char* cpu_update(const Update& step);

}  // namespace scankit::selective_scan
