// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <map>

#include "doctor/report/audit.h"
#include "doctor/report/escape.h"
#include "doctor/report/sinks.h"
#include "doctor/report/words.h"

namespace scankit {
namespace {

// What a CI server counts. An error in the environment is a failure. An open question that could hide an
// error is an error, because a gate must not take it for green. What does not apply is skipped. Warnings
// and notes leave a test passed and are in its output.
enum class TestKind : std::uint8_t { Passed, Failure, Error, Skipped };

bool has_error(const Outcome& outcome) {
  return std::ranges::any_of(outcome.findings,
                             [](const Finding& finding) { return finding.severity() == Severity::Error; });
}

TestKind kind_of(const Outcome& outcome) {
  if (has_error(outcome)) return TestKind::Failure;
  if (outcome.state == CheckState::Crashed) return TestKind::Error;
  if (is_open(outcome) && outcome.could_hide_error) return TestKind::Error;
  const bool skipped = outcome.state == CheckState::NotApplicable || outcome.state == CheckState::Unknown;
  return skipped ? TestKind::Skipped : TestKind::Passed;
}

// One attribute with its leading space.
std::string attribute(std::string_view name, std::string_view value) {
  return " " + std::string(name) + "=\"" + xml_escaped(value) + "\"";
}

// A finding with its evidence and repairs, escaped, as the text of an element.
std::string described(const Finding& finding, const Snapshot& snapshot) {
  std::string text = std::string(severity_word(finding.severity())) + ": " +
                     std::string(info(finding.cause).slug) + ": " + finding.subject + ": " +
                     tr(finding.summary);
  std::string out = xml_escaped(text) + "\n";
  for (const Evidence& evidence : finding.evidence)
    out += "  " + xml_escaped(evidence.fact + " = " + evidence.value) + "\n";
  for (const Fix& fix : finding.fixes)
    out += "  " + xml_escaped("repair: " + fix_or_command(fix, snapshot)) + "\n";
  return out;
}

// <system-out>: what a test has to say although it has passed, or besides its failure.
std::string output_of(const Outcome& outcome, const Snapshot& snapshot) {
  std::string out;
  for (const Finding& finding : outcome.findings)
    if (finding.severity() != Severity::Error) out += described(finding, snapshot);
  if (outcome.state == CheckState::Found && !outcome.why.empty())
    out += xml_escaped("unknown: " + tr(outcome.why)) + "\n";
  for (const Message& part : outcome.not_checked) out += xml_escaped("not checked: " + tr(part)) + "\n";
  return out;
}

// One <failure>: it has the type and message of the first error, and all errors in its text.
std::string failure_of(const Outcome& outcome, const Snapshot& snapshot) {
  std::string slug, message, text;
  for (const Finding& finding : outcome.findings) {
    if (finding.severity() != Severity::Error) continue;
    if (slug.empty()) {
      slug = info(finding.cause).slug;
      message = tr(finding.summary);
    }
    text += described(finding, snapshot);
  }
  return "      <failure" + attribute("type", slug) + attribute("message", message) + ">" + text +
         "</failure>\n";
}

std::string testcase(const Outcome& outcome, const Snapshot& snapshot) {
  const TestKind kind = kind_of(outcome);
  std::string inner;
  if (kind == TestKind::Failure) inner += failure_of(outcome, snapshot);
  if (kind == TestKind::Error)
    inner += "      <error" +
             attribute("type", outcome.state == CheckState::Crashed ? "check_failed" : "unknown") +
             attribute("message", tr(outcome.why)) + "></error>\n";
  if (kind == TestKind::Skipped)
    inner +=
        "      <skipped" +
        attribute("message", (outcome.state == CheckState::Unknown ? "unknown: " : "") + tr(outcome.why)) +
        "></skipped>\n";
  if (const std::string output = output_of(outcome, snapshot); !output.empty())
    inner += "      <system-out>" + output + "</system-out>\n";
  const std::string head = "    <testcase" +
                           attribute("classname", "scankit." + std::string(family(outcome.check))) +
                           attribute("name", tr(outcome.question));
  return inner.empty() ? head + "></testcase>\n" : head + ">\n" + inner + "    </testcase>\n";
}

// The counts of one suite or of all. "skipped" is not an attribute of <testsuites> in the schema.
struct Counts {
  std::size_t tests = 0, failures = 0, errors = 0, skipped = 0;
  void add(TestKind kind) {
    ++tests;
    if (kind == TestKind::Failure) ++failures;
    if (kind == TestKind::Error) ++errors;
    if (kind == TestKind::Skipped) ++skipped;
  }
  std::string attributes() const {
    return attribute("tests", std::to_string(tests)) + attribute("failures", std::to_string(failures)) +
           attribute("errors", std::to_string(errors));
  }
};

// A suite of its own with one test for each extension, so that a dashboard shows a file that failed
// yesterday and loads today.
TestKind kind_of(const AuditLine& line) {
  if (line.verdict == AuditVerdict::Fails) return TestKind::Failure;
  return line.verdict == AuditVerdict::Loads ? TestKind::Passed : TestKind::Skipped;
}

std::string testcase(const AuditLine& line) {
  const TestKind kind = kind_of(line);
  std::string inner;
  if (kind == TestKind::Failure)
    inner = "      <failure" + attribute("type", line.cause.empty() ? "uncatalogued" : line.cause) +
            attribute("message", line.why) + "></failure>\n";
  if (kind == TestKind::Skipped) inner = "      <skipped" + attribute("message", line.why) + "></skipped>\n";
  const std::string head = "    <testcase" + attribute("classname", "scankit.extensions." + line.package) +
                           attribute("name", line.file);
  return inner.empty() ? head + "></testcase>\n" : head + ">\n" + inner + "    </testcase>\n";
}

// The facts of the run; every suite repeats them, because the schema has no other place.
std::string properties(const Report& report) {
  std::string out = "    <properties>\n";
  auto rows = versions(report.snapshot);
  for (const std::string& line : compared_lines(report)) rows.emplace_back("target", line);
  rows.emplace_back("verdict", verdict_line(report));
  for (const auto& [name, value] : rows)
    out += "      <property" + attribute("name", name) + attribute("value", value) + "/>\n";
  return out + "    </properties>\n";
}

}  // namespace

// The dialect of Jenkins' xunit plugin (junit-10.xsd), which GitLab and others read as well.
std::string doctor_junit(const Report& report) {
  std::vector<std::string_view> order;  // of first appearance
  std::map<std::string_view, std::vector<const Outcome*>> suites;
  Counts all;
  for (const Outcome& outcome : report.outcomes) {
    const std::string_view name = family(outcome.check);
    if (!suites.contains(name)) order.push_back(name);
    suites[name].push_back(&outcome);
    all.add(kind_of(outcome));
  }
  const auto table = audit_table(report.snapshot);
  const std::vector<AuditLine> audited = table ? table->lines : std::vector<AuditLine>();
  Counts of_audit;
  for (const AuditLine& line : audited) {
    of_audit.add(kind_of(line));
    all.add(kind_of(line));
  }
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" +
                    attribute("name", "scankit " + std::string(command_of(report))) + all.attributes() +
                    ">\n";
  for (const std::string_view name : order) {
    Counts counts;
    for (const Outcome* outcome : suites[name]) counts.add(kind_of(*outcome));
    out += "  <testsuite" + attribute("name", name) + counts.attributes() +
           attribute("skipped", std::to_string(counts.skipped)) + ">\n" + properties(report);
    for (const Outcome* outcome : suites[name]) out += testcase(*outcome, report.snapshot);
    out += "  </testsuite>\n";
  }
  if (table) {
    out += "  <testsuite" + attribute("name", "extensions") + of_audit.attributes() +
           attribute("skipped", std::to_string(of_audit.skipped)) + ">\n" + properties(report);
    for (const AuditLine& line : audited) out += testcase(line);
    out += "  </testsuite>\n";
  }
  return out + "</testsuites>\n";
}

}  // namespace scankit
