// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// Fixes of this environment that did not come to their end, by the journals below `.scankit` of the prefix
// and of the folders on the path. Absent where all ended, or none was made.
Probed<std::vector<UnfinishedRepair>> probe_repairs(const Host& host, const Python& python);

}  // namespace scankit
