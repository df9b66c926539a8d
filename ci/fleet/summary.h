// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ci/fleet/node_result.h"
#include "doctor/model/snapshot.h"

namespace scankit::fleet {

// What `command` printed with --json, in brief: doctor, env check and validate by themselves, ci by its
// steps.
Summary summarised(std::string_view json);

// Facts that nodes of one fleet are expected to share, as name and value: what differs between them is what a
// broken one has. A fact that could not be read says so.
std::map<std::string, std::string> facts_of(const Snapshot& snapshot);

}  // namespace scankit::fleet
