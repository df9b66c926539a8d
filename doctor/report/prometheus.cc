// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <map>
#include <set>
#include <tuple>

#include "doctor/report/audit.h"
#include "doctor/report/escape.h"
#include "doctor/report/prometheus_family.h"
#include "doctor/report/sinks.h"
#include "doctor/report/words.h"

namespace scankit {
namespace {

using Family = PrometheusFamily;

// Findings with the same labels become one sample with their number: the collector refuses the
// same series twice.
void write_findings(Family family, const Report& report) {
  std::map<std::tuple<std::string, std::string, std::string, std::string>, std::size_t> counted;
  for (const Finding& finding : report.findings)
    ++counted[{std::string(info(finding.cause).slug), std::string(severity_word(finding.severity())),
               plain(finding.subject, false), plain(finding.module, false)}];
  for (const auto& [key, count] : counted) {
    const auto& [cause, severity, subject, module] = key;
    family.sample({{"cause", cause}, {"severity", severity}, {"subject", subject}, {"module", module}},
                  count);
  }
}

// Extensions that load are only counted: an environment has hundreds, and each would be a
// series of its own.
void write_audit(std::string& out, const std::string& command, const Report& report) {
  const auto table = audit_table(report.snapshot);
  if (!table) return;
  Family counts(out, command, "extensions", "Compiled extensions by the answer of --all");
  counts.sample({{"answer", "would fail"}}, table->of(AuditVerdict::Fails));
  counts.sample({{"answer", "unknown"}}, table->of(AuditVerdict::Unknown));
  counts.sample({{"answer", "loads"}}, table->of(AuditVerdict::Loads));
  counts.sample({{"answer", "other Python"}}, table->of(AuditVerdict::NotForThisPython));
  Family files(out, command, "extension", "A compiled extension that would fail, or that nobody can tell");
  std::set<std::string> seen;
  for (const AuditLine& line : table->lines) {
    const bool told = line.verdict == AuditVerdict::Fails || line.verdict == AuditVerdict::Unknown;
    // Two paths may become equal in plain(), and a series must not occur twice.
    if (!told || !seen.insert(plain(line.path, false)).second) continue;
    files.sample({{"file", line.path},
                  {"package", line.package},
                  {"answer", line.verdict == AuditVerdict::Fails ? "would fail" : "unknown"},
                  {"cause", line.cause},
                  {"why", line.why}},
                 "1");
  }
}

// Only a gate has steps.
void write_steps(std::string& out, const std::string& command, const Report& report) {
  if (report.steps.empty()) return;
  Family statuses(out, command, "step_exit_status", "Exit status of each step, after the policy");
  for (const Step& step : report.steps) statuses.sample({{"step", step.name}}, std::to_string(step.status));
  Family durations(out, command, "step_seconds", "How long each step took");
  for (const Step& step : report.steps)
    durations.sample({{"step", step.name}}, fmt::format("{:.3f}", step.seconds));
}

void write_targets(Family family, const Report& report) {
  std::vector<std::string> lines = compared_lines(report);
  for (std::string& line : target_lines(report.snapshot)) lines.push_back(std::move(line));
  std::set<std::string> seen;
  for (const std::string& line : lines)
    if (seen.insert(plain(line, false)).second) family.sample({{"target", line}}, "1");
}

}  // namespace

// There is no time in it: node_exporter's node_textfile_mtime_seconds tells when the file was written.
std::string doctor_prometheus(const Report& report, const SinkOptions& options) {
  const std::string command(command_of(report));
  const Tally n = tally(report);
  std::size_t found = 0;
  for (const Outcome& outcome : report.outcomes)
    if (outcome.state == CheckState::Found) ++found;
  std::string out;
  Family(
      out, command, "exit_status",
      "Exit status of the run: 0 clean, 1 findings, 2 usage, 3 own failure, 4 inconclusive, 5 build failed, "
      "6 validation failed, 7 drift")
      .sample({}, std::to_string(options.exit_status));
  // One series for each verdict, so that an alert can refer to a series that always exists.
  Family verdicts(out, command, "verdict", "1 for the current verdict");
  for (const Verdict verdict : {Verdict::Healthy, Verdict::Broken, Verdict::Unknown, Verdict::Empty})
    verdicts.sample({{"verdict", std::string(verdict_word(verdict))}}, report.verdict == verdict ? "1" : "0");
  Family severities(out, command, "findings", "Findings by severity");
  severities.sample({{"severity", "error"}}, n.errors);
  severities.sample({{"severity", "warning"}}, n.warnings);
  severities.sample({{"severity", "note"}}, n.notes);
  Family checks(out, command, "checks", "Checks by what they came to");
  checks.sample({{"state", "passed"}}, n.passed);
  checks.sample({{"state", "found"}}, found);
  checks.sample({{"state", "unknown"}}, n.unknown);
  checks.sample({{"state", "crashed"}}, n.crashed);
  checks.sample({{"state", "not_applicable"}}, n.not_applicable);
  write_findings(Family(out, command, "finding", "How often a cause was found in a file or package"), report);
  Family(out, command, "info", "What was looked at")
      .sample({{"version", report.snapshot.tool_version},
               {"python", report.snapshot.python.value.version},
               {"torch", report.snapshot.torch.value.version},
               {"driver", report.snapshot.driver.value.version}},
              "1");
  write_targets(Family(out, command, "target", "The target of the answer, if it is not this machine"),
                report);
  write_audit(out, command, report);
  write_steps(out, command, report);
  return out;
}

}  // namespace scankit
