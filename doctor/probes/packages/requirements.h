// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// What torch and the packages around the modules ask for by their metadata, directly or through what they ask
// for, and what is really not there. Reads `python`, `distributions` and `packages` of the snapshot. CUDA
// libraries and triton are left out: they are torch's own parts, and other facts say more of them.
Probed<std::vector<MissingRequirement>> probe_requirements(const Host& host, const Snapshot& so_far);

}  // namespace scankit
