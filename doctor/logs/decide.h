// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "doctor/model/failure.h"

namespace scankit::logs {

// Follows Python's tracebacks, also where pip, loggers or progress bars indent them. The column of
// "Traceback" is the column at which the exception is printed; lines in between are indented further.
// rich draws a box around the frames, and prints the exception below it.
class Tracebacks {
 public:
  void line(std::uint64_t number, const std::string& text);
  // The number of the traceback that the line belongs to, 0 for none. A message may continue for some
  // lines after the exception.
  std::uint64_t chain(std::uint64_t number) const;
  // Whether the line belongs to a traceback of which Python says that it ignores the exception.
  bool ignored(std::uint64_t number) const { return ignored_ && (inside_ || number == ended_); }

 private:
  std::uint64_t chain_ = 0, ended_ = 0;
  std::size_t column_ = 0;
  bool inside_ = false, chained_ = false, boxed_ = false, ignored_ = false, next_ignored_ = false;
};

// A recognised error and its place in the log. Tracebacks that Python chains ("During handling of ...",
// "... direct cause of ...") share a number; 0 means that the error is in no traceback.
struct Seen {
  LogHit hit;
  std::uint64_t chain = 0, attempt = 0;  // attempt: counts the commands that the log shows
  bool symptom = false;                  // it follows from an import that failed before, perhaps unseen
};
// Everything about a log that the decision needs. Its size does not grow with the log.
struct LogState {
  std::vector<Seen> errors;       // the first and the last ones
  std::vector<LogHit> clues;      // the first of each rule
  std::size_t earlier_clues = 0;  // of the clues, those of an installation that succeeded
  std::set<std::string> clue_rules;
  std::optional<LogHit> last;  // of a rule of that role, if the log ends with it
  bool failed = false;         // something failed, known or not
};
// Names the root, applies the joins and orders the hits: the root first, with the role "root", then the
// others by line. No hit has the role "root" if the log shows no failure, or none that anything explains.
std::vector<LogHit> decide(LogState state);

}  // namespace scankit::logs
