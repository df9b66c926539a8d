// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/report/audit.h"
#include "doctor/report/doctor_document.h"
#include "doctor/report/fixes.h"
#include "doctor/report/words.h"

namespace scankit {
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

}  // namespace scankit
