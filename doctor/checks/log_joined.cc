// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/checks/runner.h"

namespace scankit {

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
    other->summary += "; the log says so too, " + finding.summary.substr(0, finding.summary.find(':'));
    return true;
  });
}

}  // namespace scankit
