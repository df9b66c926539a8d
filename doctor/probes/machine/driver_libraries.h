// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// The user-space half of the driver: which libcuda.so.1 and libnvidia-ml.so.1 the loader would take, of what
// kind they are, and what lies beside them. Fills the library fields of `driver`.
void find_driver_libraries(const Host& host, Driver& driver);
// MIG instances that this system may use: /proc/driver/nvidia/capabilities/gpuN/mig/giM/ciK.
void find_mig_instances(const Host& host, Driver& driver);

}  // namespace scankit
