// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/common/driver_plan.h"

// Device state of a module that launches through the CUDA driver: one primary context and one set of loaded
// kernels per (device, process). Nothing here touches the driver before device_prepare. Callers hold the GIL
// or their own lock.
namespace scankit::device {

// At import. `image_fd` is the module's own file, opened then and kept: a file replaced later holds another
// build's images. It is never closed here. -1: the module has no images (message at first use).
void device_register(int image_fd, const KernelName* kernels, int kernel_count);

// Loads libcuda.so.1, retains the device's primary context, checks and loads every image for it. Cheap (a
// table look-up) from the second call on. False: `message` says what, where and what next.
bool device_prepare(int device, DeviceFacts* facts, Message* message);

// Makes the device's primary context current unless one of the same device is (a green context stays). Needs
// a successful device_prepare(device). Enter before allocating outputs and launching; leave afterwards on
// every path.
struct Guard {
  bool pushed = false;
};
bool guard_enter(int device, Guard* guard, Message* message);
void guard_leave(Guard* guard);

// Launches the plan on `stream` (a CUstream; null is the legacy default stream). Inside a guard. Fills the
// workspace pointers itself.
bool device_run(Plan* plan, int device, void* stream, void* workspace, Message* message);

}  // namespace scankit::device
