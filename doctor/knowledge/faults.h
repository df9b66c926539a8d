// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// How a fault of the catalogue appears, in words for `scankit explain` and in the lines of a log.
namespace scankit::knowledge {

// One failure class of faults.yaml, for `scankit explain`. `id` is the slug of its cause, `stage` is one of
// "build", "environment", "import", "numerics", "runtime" and "speed".
struct FaultClass {
  std::string id, title, stage;
  std::vector<std::string> error_lines;  // what users see; a log rule knows each by itself
  std::vector<std::string> seen_with;    // lines beside them that mean nothing alone
  std::string root_cause;
  std::vector<std::string> proof_static, proof_observed;
  std::string fix;
  std::vector<std::string> sources;
  // Why the doctor has no such side: the files, an observed import, a log. "" where it has.
  std::string no_static, no_observed, no_log;
  bool by_files() const { return no_static.empty(); }
  bool by_import() const { return no_observed.empty(); }
  bool by_log() const { return no_log.empty(); }
};
const std::vector<FaultClass>& fault_classes();
const FaultClass* fault_class(std::string_view id);  // nullptr where there is none

// One row of log_rules.yaml: a line that a loader, Python, pip, a compiler or CUDA prints, and what it
// means. Rules are tried in the order of the table: the first that matches a line explains it (doctor/logs).
struct LogRule {
  std::string id;
  std::string cause;  // slug; "" with `classify`, or for an error that is no fault of the installation
  std::string
      classify;  // "symbol", "library", "module", "wheel", "version", "header", "xformers": what the captures decide
  std::string role;     // "fatal", "symptom", "clue", "warning", "last", "wrapper", "boundary"
  std::string sure;     // "certain", "likely", "possible"
  std::string pattern;  // RE2 syntax, matched anywhere in the line; named groups become facts
  std::string after;    // RE2 syntax: this line or one of those just before must match
  std::string meaning;  // one sentence; {NAME} stands for a capture
  std::string settles;  // what would make sure: the output of a command, or a place to look at
  std::string repair;  // what to do, where the next step of the cause does not fit the line; "" where it does
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
// nullptr: a snapshot may come from a scankit with other rules.
const LogRule* log_rule(std::string_view id);
const std::vector<LogJoin>& log_joins();

}  // namespace scankit::knowledge
