// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "doctor/model/log.h"

namespace scankit {

// One recognised error, and which traceback it belongs to: tracebacks that Python chains ("During handling
// of ...", "... direct cause of ...") share a number; 0 for none.
struct Seen {
  LogHit hit;
  std::uint64_t chain = 0, attempt = 0;  // attempt: counts the commands that the log shows
};
struct LogState {
  std::vector<Seen> errors;   // the first and the last ones
  std::vector<LogHit> clues;  // the first of each rule
  std::set<std::string> clue_rules;
  bool failed = false;  // something failed, known or not
};
// Names the root, applies the joins, puts the hits in order.
std::vector<LogHit> decide(LogState state);

}  // namespace scankit
