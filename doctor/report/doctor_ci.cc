// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "doctor/report/doctor_document.h"
#include "doctor/report/escape.h"
#include "doctor/report/examined_files.h"
#include "doctor/report/fixes.h"
#include "doctor/report/words.h"

namespace scankit::report {
namespace {

bool has_error(const Outcome& outcome) {
  return std::ranges::any_of(outcome.findings,
                             [](const Finding& finding) { return finding.severity() == Severity::Error; });
}

// An error in the environment is a failure. An open question that could hide an error is an error, because a gate must not take
// it for green. What does not apply is skipped. Warnings and notes leave a test passed and are in its output.
TestState state_of(const Outcome& outcome) {
  if (has_error(outcome)) return TestState::Failed;
  if (outcome.state == CheckState::Crashed) return TestState::Error;
  if (is_open(outcome) && outcome.could_hide_error) return TestState::Error;
  const bool skipped = outcome.state == CheckState::NotApplicable || outcome.state == CheckState::Unknown;
  return skipped ? TestState::Skipped : TestState::Passed;
}

// A finding with its evidence and repairs, a line each.
void describe(std::vector<std::string>& lines, const Finding& finding, const Snapshot& snapshot) {
  lines.push_back(std::string(severity_word(finding.severity())) + ": " +
                  std::string(info(finding.cause).slug) + ": " + finding.subject + ": " +
                  tr(finding.summary));
  for (const Evidence& evidence : finding.evidence)
    lines.push_back("  " + evidence.fact + " = " + evidence.value);
  for (const Fix& fix : finding.fixes) lines.push_back("  repair: " + fix_or_command(fix, snapshot));
}

// One failure: it has the type and message of the first error, and all errors in its text. The others are what the test says
// although it has passed, or besides its failure.
Test test_of(const Outcome& outcome, const Snapshot& snapshot) {
  Test test{.group = "scankit." + std::string(family(outcome.check)),
            .name = tr(outcome.question),
            .state = state_of(outcome)};
  for (const Finding& finding : outcome.findings) {
    const bool error = finding.severity() == Severity::Error;
    if (error && test.type.empty()) {
      test.type = info(finding.cause).slug;
      test.message = tr(finding.summary);
    }
    describe(error ? test.details : test.output, finding, snapshot);
  }
  if (test.state == TestState::Error) {
    test.type = outcome.state == CheckState::Crashed ? "check_failed" : "unknown";
    test.message = tr(outcome.why);
  }
  if (test.state == TestState::Skipped)
    test.message = (outcome.state == CheckState::Unknown ? "unknown: " : "") + tr(outcome.why);
  if (outcome.state == CheckState::Found && !outcome.why.empty())
    test.output.push_back("unknown: " + tr(outcome.why));
  for (const Message& part : outcome.not_checked) test.output.push_back("not checked: " + tr(part));
  return test;
}

Test test_of(const AuditLine& line) {
  Test test{.group = "scankit.extensions." + line.package, .name = line.file, .message = line.why};
  if (line.verdict == AuditVerdict::Loads) return test;
  test.state = line.verdict == AuditVerdict::Fails ? TestState::Failed : TestState::Skipped;
  test.type = line.cause.empty() ? "uncatalogued" : line.cause;
  return test;
}

}  // namespace

std::vector<Suite> doctor_suites(const Report& report) {
  std::vector<Suite> suites;  // in the order of their first check
  for (const Outcome& outcome : report.outcomes) {
    const std::string name(family(outcome.check));
    auto suite = std::ranges::find(suites, name, &Suite::name);
    if (suite == suites.end()) suite = suites.insert(suites.end(), {name, {}});
    suite->tests.push_back(test_of(outcome, report.snapshot));
  }
  if (const auto audit = audit_table(report.snapshot)) {
    Suite extensions{"extensions", {}};
    for (const AuditLine& line : audit->lines) extensions.tests.push_back(test_of(line));
    suites.push_back(std::move(extensions));
  }
  return suites;
}

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

}  // namespace scankit::report
