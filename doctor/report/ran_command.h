// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "doctor/model/failure.h"

// The command of `scankit run` in a report.
namespace scankit {

// "command" of the JSON report.
nlohmann::ordered_json command_json(const RanCommand& command);

// What people read of it, in pairs of item and value.
std::vector<std::pair<std::string, std::string>> command_rows(const RanCommand& command);

}  // namespace scankit
