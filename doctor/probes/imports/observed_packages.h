// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/model/snapshot.h"

namespace scankit {

// What to import, in a child for each package: the package, as the first thing in a fresh interpreter; then
// torch, and the siblings that the package takes names from (by themselves, below its `except ImportError`).
// In the words of observed_program.h.
std::vector<std::vector<std::string>> package_imports(const Snapshot& snapshot, bool with_torch);
// The module, with the names that packages call in it: "selective_scan_cuda:bwd,fwd".
std::string with_called_names(const Snapshot& snapshot, const std::string& module);
std::string bare_name(const std::string& request);  // without "?" and names

// What became of them, as "sibling" and "package" observations.
void take_package(const std::string& package, const std::vector<Observation>& imports,
                  std::vector<Observation>& seen);

}  // namespace scankit
