// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// How the modules and torch came here: the texts of the modules' files, when each was installed, and what pip
// noted about torch.
void read_installation(const Host& host, const Snapshot& so_far, Packages& packages);

}  // namespace scankit
