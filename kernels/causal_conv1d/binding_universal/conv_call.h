// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/binding/device_call.h"
#include "kernels/causal_conv1d/params.h"

namespace scankit {

// A call that runs convolutions, on the CPU or the device of the tensor it began with.
class ConvCall : public DeviceCall {
 public:
  bool run(const Call& call, const causal_conv1d::Forward& conv);
  bool run(const Call& call, const causal_conv1d::Backward& conv);
  bool run(const Call& call, const causal_conv1d::Update& conv);
};

}  // namespace scankit
