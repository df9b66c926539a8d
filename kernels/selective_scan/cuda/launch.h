// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/common/driver_plan.h"
#include "kernels/selective_scan/params.h"

// Launch plans of the CUDA selective scan. Links nothing but libc, so that the universal module can hold it.
namespace scankit::selective_scan {

// The table that Launch::kernel indexes; give it to device_register.
extern const device::KernelName kCudaKernels[];
extern const int kCudaKernelCount;

// Fill `plan`. False: the parameters cannot be run (message says which); they are assumed to have passed the
// binding's own checks of shapes, strides and types. Every element of every output is written, also where
// length or batch is 0. States beside the scan (initial, last, their gradients, packed sequences) are taken
// in every kind; cu_seqlens is read by the kernels, on the device. In plan_backward x.data may be null: the
// plan then starts with a forward that saves the states, in du where it has room (kept_states.h), else in the
// workspace.
bool plan_forward(const Forward& parameters, const device::DeviceFacts& facts, device::Plan* plan,
                  device::Message* message);
bool plan_backward(const Backward& parameters, const device::DeviceFacts& facts, device::Plan* plan,
                   device::Message* message);

// One step of decoding, one launch, no workspace. Takes every Update as params.h describes it, of up to
// kMaxStates states, the state's and every other row at any place; the caller has checked shapes and types.
bool plan_update(const Update& parameters, const device::DeviceFacts& facts, device::Plan* plan,
                 device::Message* message);

}  // namespace scankit::selective_scan
