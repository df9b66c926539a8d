// SPDX-License-Identifier: Apache-2.0
#include "ci/fleet/report.h"
#include "doctor/base/say.h"
#include "doctor/report/escape.h"

namespace scankit::fleet {
namespace {

std::string attribute(std::string_view name, std::string_view value) {
  return " " + std::string(name) + "=\"" + xml_escaped(value) + "\"";
}

std::string element(const char* name, const std::string& type, const std::string& message) {
  return "      <" + std::string(name) + attribute("type", type) + attribute("message", message) + "></" +
         name + ">\n";
}

// A node that failed is a failure; one of which nothing is known an error: a skipped test is green to most.
std::string inner(const NodeEvent& node) {
  if (node.verdict == Verdict::Failed) return element("failure", node.state, english(node.why));
  return node.verdict == Verdict::Unknown ? element("error", node.state, english(node.why)) : "";
}

}  // namespace

// The dialect of doctor's: a suite, a test for each node, and one for the fleet as a whole.
std::string junit_report(const FleetReport& report) {
  std::string body;
  for (const NodeEvent& node : report.nodes) {
    const std::string head =
        "    <testcase" + attribute("classname", "scankit.fleet") + attribute("name", node.name);
    const std::string content = inner(node);
    body += content.empty() ? head + "></testcase>\n" : head + ">\n" + content + "    </testcase>\n";
  }
  for (const Message& problem : report.problems)
    body += "    <testcase" + attribute("classname", "scankit.fleet") + attribute("name", "complete") +
            ">\n" + element("error", "unknown", english(problem)) + "    </testcase>\n";
  const std::string counts =
      attribute("tests", std::to_string(report.nodes.size() + report.problems.size())) +
      attribute("failures", std::to_string(report.count(Verdict::Failed))) +
      attribute("errors", std::to_string(report.count(Verdict::Unknown) + report.problems.size()));
  std::string properties;
  for (const auto& [fact, value] : report.common)
    properties += "      <property" + attribute("name", fact) + attribute("value", value) + "/>\n";
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" + attribute("name", "scankit fleet") +
         counts + ">\n  <testsuite" + attribute("name", "nodes") + counts + attribute("skipped", "0") +
         ">\n    <properties>\n" + properties + "      <property" + attribute("name", "verdict") +
         attribute("value", verdict_line(report)) + "/>\n    </properties>\n" + body +
         "  </testsuite>\n</testsuites>\n";
}

}  // namespace scankit::fleet
