// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// Those of modules_asked that are packages or files of Python, by sys.path and the editable finders. A name
// of which import takes a compiled file (so_far.extensions) is none.
std::vector<AskedPackage> find_asked_packages(const Host& host, const Snapshot& so_far);

}  // namespace scankit
