// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/causal_conv1d/params.h"
#include "kernels/common/driver_plan.h"

// Launch plans of the CUDA convolution. Links nothing but libc, so that the universal module can hold it.
namespace scankit::causal_conv1d {

// The table that Launch::kernel indexes; give it to device_register.
extern const device::KernelName kCudaKernels[];
extern const int kCudaKernelCount;

// Fill `plan`. False: the parameters cannot be run (message says which); they are assumed to have passed the
// binding's own checks of shapes, strides and types. Every element of every output is written, also where
// length or batch is 0.
bool plan_forward(const Forward& conv, device::Plan* plan, device::Message* message);
bool plan_backward(const Backward& conv, device::Plan* plan, device::Message* message);
bool plan_update(const Update& conv, device::Plan* plan, device::Message* message);

}  // namespace scankit::causal_conv1d
