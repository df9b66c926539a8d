// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/model/log.h"
#include "doctor/model/ran_command.h"
#include "doctor/run/supervise.h"

namespace scankit {

// What the report has of a command that failed: its words, its end, and what was seen of it. `directory` is
// the one in which it was started. `examined` stays empty: it is known later.
RanCommand command_facts(const std::vector<std::string>& words, const std::string& directory,
                         const CommandRun& run, const Log& log);

}  // namespace scankit
