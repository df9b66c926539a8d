// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// The Python packages that import the modules under diagnosis: what they call and import, and whether the
// installed files offer that. Reads `modules`, `python`, `distributions`, `importers` and `extensions` of the
// snapshot. Absent where no such package is installed.
Probed<Packages> probe_packages(const Host& host, const Snapshot& so_far);

}  // namespace scankit
