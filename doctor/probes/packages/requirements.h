// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"
#include "doctor/model/target_facts.h"

namespace scankit {

// Those of modules_asked that are packages or files of Python, by sys.path and the editable finders. A name
// of which import takes a compiled file (so_far.extensions) is none.
std::vector<AskedPackage> find_asked_packages(const Host& host, const Snapshot& so_far);

// Whether each of `names` is a module on sys.path, or an installed distribution whose files are there. Needs
// the Python and the distributions of `so_far`.
std::vector<Requirement> probe_required(const Host& host, const Snapshot& so_far,
                                        const std::vector<std::string>& names);
// The same from the facts of a stored snapshot, which lists no modules: what is not seen in it is "not-read".
std::vector<Requirement> required_in(const Snapshot& snapshot, const std::vector<std::string>& names);

// Where nobody could look.
std::vector<Requirement> unread_requirements(const std::vector<std::string>& names);

// What torch and the packages around the modules ask for by their metadata, directly or through what they ask
// for, and what is really not there. Reads `python`, `distributions` and `packages` of the snapshot. CUDA
// libraries and triton are left out: they are torch's own parts, and other facts say more of them.
Probed<std::vector<MissingRequirement>> probe_requirements(const Host& host, const Snapshot& so_far);

}  // namespace scankit
