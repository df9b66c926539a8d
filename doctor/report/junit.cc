// SPDX-License-Identifier: Apache-2.0
#include "doctor/report/document.h"
#include "doctor/report/escape.h"

namespace scankit::report {
namespace {

// One attribute with its leading space.
std::string attribute(std::string_view name, std::string_view value) {
  return " " + std::string(name) + "=\"" + xml_escaped(value) + "\"";
}

std::string lines_of(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += xml_escaped(line) + "\n";
  return out;
}

// <failure>, <error> or <skipped>. The schema of a skipped test has no type.
std::string ending_of(const Test& test) {
  if (test.state == TestState::Passed) return "";
  const std::string name = test.state == TestState::Failed  ? "failure"
                           : test.state == TestState::Error ? "error"
                                                            : "skipped";
  return "      <" + name + (name == "skipped" ? "" : attribute("type", test.type)) +
         attribute("message", test.message) + ">" + lines_of(test.details) + "</" + name + ">\n";
}

std::string testcase(const Test& test) {
  std::string inner = ending_of(test);
  if (!test.output.empty()) inner += "      <system-out>" + lines_of(test.output) + "</system-out>\n";
  const std::string head =
      "    <testcase" + attribute("classname", test.group) + attribute("name", test.name);
  return inner.empty() ? head + "></testcase>\n" : head + ">\n" + inner + "    </testcase>\n";
}

// The counts of one suite or of all. "skipped" is not an attribute of <testsuites> in the schema.
struct Counts {
  std::size_t tests = 0, failures = 0, errors = 0, skipped = 0;
  void add(const Suite& suite) {
    for (const Test& test : suite.tests) {
      ++tests;
      failures += test.state == TestState::Failed;
      errors += test.state == TestState::Error;
      skipped += test.state == TestState::Skipped;
    }
  }
  std::string attributes() const {
    return attribute("tests", std::to_string(tests)) + attribute("failures", std::to_string(failures)) +
           attribute("errors", std::to_string(errors));
  }
};

// The facts of the run; every suite repeats them, because the schema has no other place.
std::string properties(const Document& document) {
  std::string out = "    <properties>\n";
  const auto add = [&](std::string_view name, std::string_view value) {
    out += "      <property" + attribute("name", name) + attribute("value", value) + "/>\n";
  };
  for (const auto& [name, value] : document.facts) add(name, value);
  add("verdict", document.verdict);
  return out + "    </properties>\n";
}

}  // namespace

std::string junit_of(const Document& document) {
  Counts all;
  for (const Suite& suite : document.suites) all.add(suite);
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" +
                    attribute("name", "scankit " + document.command) + all.attributes() + ">\n";
  for (const Suite& suite : document.suites) {
    Counts counts;
    counts.add(suite);
    out += "  <testsuite" + attribute("name", suite.name) + counts.attributes() +
           attribute("skipped", std::to_string(counts.skipped)) + ">\n" + properties(document);
    for (const Test& test : suite.tests) out += testcase(test);
    out += "  </testsuite>\n";
  }
  return out + "</testsuites>\n";
}

}  // namespace scankit::report
