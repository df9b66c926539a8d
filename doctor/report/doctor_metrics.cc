// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "doctor/report/audit.h"
#include "doctor/report/doctor_document.h"
#include "doctor/report/escape.h"
#include "doctor/report/words.h"

namespace scankit {
namespace {

std::string number(std::size_t n) { return std::to_string(n); }

// One series for each verdict, so that an alert can refer to a series that always exists.
Metric verdicts(const Report& report) {
  Metric metric{"verdict", "1 for the current verdict", {}};
  for (const Verdict verdict : {Verdict::Healthy, Verdict::Broken, Verdict::Unknown, Verdict::Empty})
    metric.samples.push_back(
        {{{"verdict", std::string(verdict_word(verdict))}}, report.verdict == verdict ? "1" : "0"});
  return metric;
}

// Findings with the same labels, as they will be written, become one sample with their number.
Metric findings(const Report& report) {
  std::map<std::tuple<std::string, std::string, std::string, std::string>, std::size_t> counted;
  for (const Finding& finding : report.findings)
    ++counted[{std::string(info(finding.cause).slug), std::string(severity_word(finding.severity())),
               plain(finding.subject, false), plain(finding.module, false)}];
  Metric metric{"finding", "How often a cause was found in a file or package", {}};
  for (const auto& [key, count] : counted) {
    const auto& [cause, severity, subject, module] = key;
    metric.samples.push_back(
        {{{"cause", cause}, {"severity", severity}, {"subject", subject}, {"module", module}},
         number(count)});
  }
  return metric;
}

// Extensions that load are only counted: an environment has hundreds, and each would be a
// series of its own.
void add_audit(std::vector<Metric>& metrics, const Report& report) {
  const auto table = audit_table(report.snapshot);
  if (!table) return;
  metrics.push_back({"extensions",
                     "Compiled extensions by the answer of --all",
                     {{{{"answer", "would fail"}}, number(table->of(AuditVerdict::Fails))},
                      {{{"answer", "unknown"}}, number(table->of(AuditVerdict::Unknown))},
                      {{{"answer", "loads"}}, number(table->of(AuditVerdict::Loads))},
                      {{{"answer", "other Python"}}, number(table->of(AuditVerdict::NotForThisPython))}}});
  Metric files{"extension", "A compiled extension that would fail, or that nobody can tell", {}};
  for (const AuditLine& line : table->lines)
    if (line.verdict == AuditVerdict::Fails || line.verdict == AuditVerdict::Unknown)
      files.samples.push_back({{{"file", line.path},
                                {"package", line.package},
                                {"answer", line.verdict == AuditVerdict::Fails ? "would fail" : "unknown"},
                                {"cause", line.cause},
                                {"why", line.why}},
                               "1"});
  metrics.push_back(std::move(files));
}

// Only a gate has steps.
void add_steps(std::vector<Metric>& metrics, const Report& report) {
  if (report.steps.empty()) return;
  Metric statuses{"step_exit_status", "Exit status of each step, after the policy", {}};
  Metric durations{"step_seconds", "How long each step took", {}};
  for (const Step& step : report.steps) {
    statuses.samples.push_back({{{"step", step.name}}, std::to_string(step.status)});
    durations.samples.push_back({{{"step", step.name}}, fmt::format("{:.3f}", step.seconds)});
  }
  metrics.push_back(std::move(statuses));
  metrics.push_back(std::move(durations));
}

Metric targets(const Report& report) {
  Metric metric{"target", "The target of the answer, if it is not this machine", {}};
  for (const std::string& line : compared_lines(report)) metric.samples.push_back({{{"target", line}}, "1"});
  for (const std::string& line : target_lines(report.snapshot))
    metric.samples.push_back({{{"target", line}}, "1"});
  return metric;
}

}  // namespace

std::vector<Metric> doctor_metrics(const Report& report, int exit_status) {
  const Tally n = tally(report);
  const auto found =
      static_cast<std::size_t>(std::ranges::count(report.outcomes, CheckState::Found, &Outcome::state));
  const Snapshot& snapshot = report.snapshot;
  std::vector<Metric> metrics = {exit_status_metric(exit_status),
                                 verdicts(report),
                                 {"findings",
                                  "Findings by severity",
                                  {{{{"severity", "error"}}, number(n.errors)},
                                   {{{"severity", "warning"}}, number(n.warnings)},
                                   {{{"severity", "note"}}, number(n.notes)}}},
                                 {"checks",
                                  "Checks by what they came to",
                                  {{{{"state", "passed"}}, number(n.passed)},
                                   {{{"state", "found"}}, number(found)},
                                   {{{"state", "unknown"}}, number(n.unknown)},
                                   {{{"state", "crashed"}}, number(n.crashed)},
                                   {{{"state", "not_applicable"}}, number(n.not_applicable)}}},
                                 findings(report),
                                 {"info",
                                  "What was looked at",
                                  {{{{"version", snapshot.tool_version},
                                     {"python", snapshot.python.value.version},
                                     {"torch", snapshot.torch.value.version},
                                     {"driver", snapshot.driver.value.version}},
                                    "1"}}},
                                 targets(report)};
  add_audit(metrics, report);
  add_steps(metrics, report);
  return metrics;
}

}  // namespace scankit
