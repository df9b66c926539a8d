// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/target_facts.h"

namespace scankit {

// Whether each of `names` is a module on sys.path, or an installed distribution whose files are there. Needs
// the Python and the distributions of `so_far`.
std::vector<Requirement> probe_required(const Host& host, const Snapshot& so_far,
                                        const std::vector<std::string>& names);
// The same from the facts of a stored snapshot, which lists no modules: what is not seen in it is "not-read".
std::vector<Requirement> required_in(const Snapshot& snapshot, const std::vector<std::string>& names);

// Where nobody could look.
std::vector<Requirement> unread_requirements(const std::vector<std::string>& names);

}  // namespace scankit
