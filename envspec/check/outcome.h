// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "doctor/model/finding.h"
#include "envspec/spec/spec.h"

// What the checks of a spec have in common.
namespace scankit {

inline Outcome asked(const char* check, std::string question) {
  Outcome outcome;
  outcome.check = check;
  outcome.question = std::move(question);
  return outcome;
}

inline void not_known(Outcome& outcome, const std::string& why) {
  if (outcome.state != CheckState::Found) outcome.state = CheckState::Unknown;
  outcome.could_hide_error = true;
  outcome.why += (outcome.why.empty() ? "" : "; ") + why;
}

inline void drifted(Outcome& outcome, Finding finding) {
  outcome.state = CheckState::Found;
  outcome.findings.push_back(std::move(finding));
}

// There is nothing here that could be wrong, and somewhere else there may be.
inline void left_out(Outcome& outcome, const std::string& why) {
  outcome.state = CheckState::NotApplicable;
  outcome.left_out = true;
  outcome.why = why;
}

// "scankit.yaml:12"
inline std::string line_name(const Spec& spec, const std::string& path) {
  const unsigned line = spec.line_of(path);
  return line == 0 ? spec.file : spec.file + ":" + std::to_string(line);
}

inline FileLine file_line(const Spec& spec, const std::string& path) {
  return {spec.file, spec.line_of(path)};
}

// As an installer reads it: "torch==2.11.*".
inline std::string requirement(const std::string& package, const VersionRange& range) {
  const std::string& text = range.text();
  const bool bare = !text.empty() && text[0] >= '0' && text[0] <= '9';
  return package + (bare ? "==" : "") + text;
}

}  // namespace scankit
