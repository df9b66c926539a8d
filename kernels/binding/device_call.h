// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/binding/tensor.h"
#include "kernels/common/driver_context.h"

namespace scankit {

// The device's part of one call: images are loaded, and its context is current from begin() until
// destruction. Does nothing for tensors on the CPU.
class DeviceCall {
 public:
  DeviceCall() = default;
  DeviceCall(const DeviceCall&) = delete;
  DeviceCall& operator=(const DeviceCall&) = delete;
  ~DeviceCall();

  // Before outputs are allocated: autograd's threads have no current context. The tensor must outlive this.
  bool begin(const Call& call, const Tensor& beside);

  bool on_cpu() const { return beside_->kind == DeviceKind::Cpu; }
  // The tensor's device; not on the CPU.
  const device::DeviceFacts& facts() const { return facts_; }
  // Runs the plan on torch's current stream.
  bool launch(const Call& call, device::Plan* plan);

 private:
  const Tensor* beside_ = nullptr;
  device::DeviceFacts facts_ = {};
  device::Guard guard_ = {};
  bool entered_ = false;
};

// Raises MemoryError with `failure` where it is not null.
bool cpu_done(const Call& call, const char* failure);

}  // namespace scankit
