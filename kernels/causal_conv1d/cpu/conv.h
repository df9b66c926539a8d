// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/causal_conv1d/params.h"

// The convolution on the CPU. Each returns null, or what went wrong.
namespace scankit::causal_conv1d {

const char* cpu_forward(const Forward& conv);
const char* cpu_backward(const Backward& conv);
const char* cpu_update(const Update& conv);

}  // namespace scankit::causal_conv1d
