// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "doctor/model/snapshot.h"

// Which torch the examined files were built for, in the report.
namespace scankit {

// "built_for" of `doctor --json`: one entry for each file that could be read, and one for each wheel,
// directory or distribution.
nlohmann::ordered_json built_for_json(const Snapshot& snapshot);

// Each examined file, wheel, directory or distribution, with a sentence about the torch that it
// was built for.
std::vector<std::pair<std::string, std::string>> built_for_rows(const Snapshot& snapshot);

// "mamba-ssm, 3 files together: built for torch 2.4; 2.11 is installed".
std::string together_sentence(const BuiltFor& built_for, const std::string& installed);

}  // namespace scankit
