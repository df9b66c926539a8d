// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace scankit {

// One row of log_rules.yaml: a line that a loader, Python, pip, a compiler or CUDA prints, and what it
// means. Rules are tried in the order of the table: the first that matches a line explains it (doctor/logs).
struct LogRule {
  std::string id;
  std::string cause;  // slug; "" with `classify`, or for an error that is no fault of the installation
  std::string
      classify;  // "symbol", "library", "module", "wheel", "version", "header", "xformers": what the captures decide
  std::string role;     // "fatal", "clue", "wrapper", "boundary"
  std::string sure;     // "certain", "likely", "possible"
  std::string pattern;  // RE2 syntax, matched anywhere in the line; named groups become facts
  std::string after;    // RE2 syntax: this line or one of those just before must match
  std::string meaning;  // one sentence; {NAME} stands for a capture
  std::string settles;  // what would make sure: the output of a command, or a place to look at
  std::vector<std::string> alternatives;  // slugs of other causes of the same line
};
inline constexpr std::string_view kNoCause = "none";

// An error and a clue of the same log that together mean something else. `gives` is the slug of that cause, or
// kNoCause if the error is then not a fault of the catalogue.
struct LogJoin {
  std::vector<std::string> causes, clues;  // one of each must be there
  std::vector<std::string> unless;         // and none of these clues
  std::string gives, sure, meaning, settles;
};
const std::vector<LogRule>& log_rules();
const std::vector<LogJoin>& log_joins();

}  // namespace scankit
