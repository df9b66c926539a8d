// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/binding/device_call.h"
#include "kernels/selective_scan/params.h"

namespace scankit {

// A call that runs scans, on the CPU or the device of the tensor it began with.
class ScanCall : public DeviceCall {
 public:
  bool run(const Call& call, const selective_scan::Forward& scan);
  bool run(const Call& call, const selective_scan::Backward& scan);
  bool run(const Call& call, const selective_scan::Update& step);
};

}  // namespace scankit
