// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "doctor/model/failure.h"

namespace scankit {

// A recognised error and its place in the log. Tracebacks that Python chains ("During handling of ...",
// "... direct cause of ...") share a number; 0 means that the error is in no traceback.
struct Seen {
  LogHit hit;
  std::uint64_t chain = 0, attempt = 0;  // attempt: counts the commands that the log shows
};
// Everything about a log that the decision needs. Its size does not grow with the log.
struct LogState {
  std::vector<Seen> errors;   // the first and the last ones
  std::vector<LogHit> clues;  // the first of each rule
  std::set<std::string> clue_rules;
  bool failed = false;  // something failed, known or not
};
// Names the root, applies the joins and orders the hits: the root first, with the role "root", then the
// others by line. No hit has the role "root" if the log shows no failure, or none that anything explains.
std::vector<LogHit> decide(LogState state);

}  // namespace scankit
