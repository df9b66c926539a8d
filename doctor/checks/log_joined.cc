// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/checks/runner.h"
#include "doctor/checks/view.h"

namespace scankit {

namespace {

std::string line_of(const Finding& from_log) {
  const auto line = std::ranges::find_if(
      from_log.evidence, [](const Evidence& evidence) { return evidence.fact.ends_with("/line"); });
  return line == from_log.evidence.end() ? "" : line->value;
}

}  // namespace

// Where the log and the facts name the same cause they are one finding with the evidence of both. The log's
// is the one to go: the other knows the machine. A log that names no module speaks of any of them.
void join_log(Report& report) {
  const auto is_log = [](const Outcome& outcome) { return outcome.check == "log-explained"; };
  const auto from_log = std::ranges::find_if(report.outcomes, is_log);
  if (from_log == report.outcomes.end()) return;
  const auto partner = [&](const Finding& wanted) -> Finding* {
    for (Outcome& outcome : report.outcomes) {
      if (is_log(outcome)) continue;
      for (Finding& finding : outcome.findings)
        if (finding.cause == wanted.cause && (finding.module == wanted.module || wanted.module == "log"))
          return &finding;
    }
    return nullptr;
  };
  std::erase_if(from_log->findings, [&](const Finding& finding) {
    Finding* other = partner(finding);
    if (other == nullptr) return false;
    other->evidence.insert(other->evidence.end(), finding.evidence.begin(), finding.evidence.end());
    if (finding.severity() > other->severity()) other->severity_override = finding.severity();
    other->summary =
        clauses({other->summary, say("the log says so too, line {} of the log", line_of(finding))});
    return true;
  });
}

}  // namespace scankit
