// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// For each line of `source` that imports one of `modules`: the first line that uses what the import binds
// although it may not be there; 0 for none. A use counts only outside every condition, `try` and `assert`,
// in a function that has not asked before, and of a name that nothing else binds: what this overlooks is
// safe, and what it claims fails.
std::map<unsigned, unsigned> unguarded_uses(std::string_view source, const std::vector<std::string>& modules);

// What the sources in the current directory import of compiled modules and of mamba_ssm. Nothing is run.
// Virtual environments, hidden directories and links to directories are passed over. Absent where the
// directory has no Python sources that do so, or is a home directory or the root of the file system, which
// are no projects.
Probed<Project> probe_project(const Host& host, const Python& python);

}  // namespace scankit
