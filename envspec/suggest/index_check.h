// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>

#include "builder/installer/installer.h"
#include "envspec/suggest/report.h"

namespace scankit::envspec {

// Whether the user's index has what a set installs from it: torch, the exact requirements of its packages, and their
// source archives. Asked through uv or pip; nothing is installed and nothing of the index is run. A build of torch from
// PyTorch's archive is asked of uv only, which knows where that is.
struct IndexCheck {
  installer::Installer installer;
  std::chrono::milliseconds deadline{20'000};  // for all sets together
};

// uv where it is on PATH, unless pip's settings alone name an index; else what brings wheels to this environment.
installer::Installer index_installer_for(const Host& host, const Snapshot& machine);

// Asks for the first sets until `wanted` of them are confirmed, and takes those that the index refuses out of the
// suggestion. Fills `index` and `refused_by_index`. An index that does not answer confirms nothing and refuses nothing.
void check_index(const IndexCheck& check, std::size_t wanted, SuggestAnswer& answer);

// The requirements that one set asks of the index: "torch==2.10.0", "tilelang==0.1.8".
std::vector<std::string> requirements_of(const SuggestedSet& set);

}  // namespace scankit::envspec
