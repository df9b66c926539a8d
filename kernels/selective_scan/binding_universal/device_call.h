// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/common/driver_context.h"
#include "kernels/selective_scan/binding_universal/tensor.h"

namespace scankit {

// The device's side of one call: images loaded, its context current from begin() to destruction. On the CPU:
// nothing.
class DeviceCall {
 public:
  DeviceCall() = default;
  DeviceCall(const DeviceCall&) = delete;
  DeviceCall& operator=(const DeviceCall&) = delete;
  ~DeviceCall();

  // Before outputs are allocated: autograd's threads have no current context.
  bool begin(const Call& call, const Tensor& u);

  bool run(const Call& call, const selective_scan::Forward& scan);
  bool run(const Call& call, const selective_scan::Backward& scan);

 private:
  bool launch(const Call& call, device::Plan* plan);

  const Tensor* u_ = nullptr;
  device::DeviceFacts facts_ = {};
  device::Guard guard_ = {};
  bool entered_ = false;
};

}  // namespace scankit
