// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "doctor/base/say.h"
#include "doctor/report/escape.h"
#include "validate/judge/speed.h"
#include "validate/report/report.h"

// JUnit XML in the dialect of doctor's report: one suite for each device, and further ones for speed, the
// module and the run where there is something to say.
namespace scankit::validate {
namespace {

std::string attribute(std::string_view name, std::string_view value) {
  return " " + std::string(name) + "=\"" + xml_escaped(value) + "\"";
}

std::string first_reason(const CaseResult& c) {
  return c.reasons.empty() ? say("not run") : c.reasons.front();
}

// What is inside the <testcase>. A wrong result is a failure, and a lost process an error. A case that was
// not run is skipped, which CI servers show neither green nor red.
std::string inner(const CaseResult& c) {
  if (c.state == CaseState::Passed) return "";
  if (c.state == CaseState::NotRun)
    return "      <skipped" + attribute("message", first_reason(c)) + "></skipped>\n";
  const bool failed = c.state == CaseState::Failed;
  std::string text;
  for (const std::string& reason : c.reasons) text += xml_escaped(reason) + "\n";
  const std::string type = failed ? "wrong" : c.state == CaseState::Hung ? "hung" : "crashed";
  const std::string element = failed ? "failure" : "error";
  return "      <" + element + attribute("type", type) + attribute("message", first_reason(c)) + ">" + text +
         "</" + element + ">\n";
}

struct Suite {
  std::size_t tests = 0, failures = 0, errors = 0, skipped = 0;
  std::string body;

  void add(const std::string& group, const std::string& name, const std::string& content) {
    ++tests;
    failures += content.find("<failure") != std::string::npos;
    errors += content.find("<error") != std::string::npos;
    skipped += content.find("<skipped") != std::string::npos;
    const std::string head =
        "    <testcase" + attribute("classname", "scankit.validate." + group) + attribute("name", name);
    body += content.empty() ? head + "></testcase>\n" : head + ">\n" + content + "    </testcase>\n";
  }
};

std::string pass_name(const Timing& t) {
  return t.pass + " " + t.dtype + " B" + std::to_string(t.batch) + " D" + std::to_string(t.dim) + " L" +
         std::to_string(t.length) + " N" + std::to_string(t.states) + " " + t.cache;
}

// A colon would split class names in some viewers, so that "cuda:0" becomes "cuda_0".
std::map<std::string, Suite> suites_of(const Validation& v) {
  std::map<std::string, Suite> suites;
  const auto part = [](const std::string& device) {
    std::string name = device;
    std::replace(name.begin(), name.end(), ':', '_');
    return name;
  };
  for (const CaseResult& c : v.cases) suites[c.device].add(part(c.device), c.id, inner(c));
  for (const AgainstBaseline& c : v.compared) {
    const Timing& t = v.timings[c.timing];
    const std::string slower = say("at least {:.3f} times as long as in the baseline", c.low);
    suites["speed"].add("speed." + part(t.device), pass_name(t),
                        c.regressed ? "      <failure" + attribute("type", "slower") +
                                          attribute("message", slower) + "></failure>\n"
                                    : "");
  }
  const bool broken =
      v.module_problem == ModuleProblem::ImportFailed || v.module_problem == ModuleProblem::LacksFunctions;
  // A module that cannot be used has no cases; without this suite the report would be empty
  // and look green.
  if (broken)
    suites["module"].add("module", v.module,
                         "      <failure" + attribute("type", "module") +
                             attribute("message", v.module_message) + "></failure>\n");
  const std::string open = !v.blocked.empty() ? v.blocked : v.baseline_problem;
  if (!open.empty() && !broken)
    suites["run"].add(
        "run", "completed",
        "      <error" + attribute("type", "not_completed") + attribute("message", open) + "></error>\n");
  return suites;
}

}  // namespace

std::string junit_report(const Validation& v) {
  const auto suites = suites_of(v);
  Suite all;
  for (const auto& [name, suite] : suites) {
    all.tests += suite.tests;
    all.failures += suite.failures;
    all.errors += suite.errors;
  }
  const auto counts = [](const Suite& s) {
    return attribute("tests", std::to_string(s.tests)) + attribute("failures", std::to_string(s.failures)) +
           attribute("errors", std::to_string(s.errors));
  };
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" +
                    attribute("name", "scankit validate") + counts(all) + ">\n";
  for (const auto& [name, suite] : suites) {
    out += "  <testsuite" + attribute("name", name) + counts(suite) +
           attribute("skipped", std::to_string(suite.skipped)) + ">\n    <properties>\n";
    const std::pair<const char*, std::string> rows[] = {
        {"module", v.module_file.empty() ? v.module : v.module_file},
        {"python", v.python},
        {"torch", v.torch_version},
        {"gpu", v.gpu},
        {"cpu", v.cpu},
        {"seed", std::to_string(v.seed)},
        {"mode", v.mode}};
    for (const auto& [key, value] : rows)
      out += "      <property" + attribute("name", key) + attribute("value", value) + "/>\n";
    out += "    </properties>\n" + suite.body + "  </testsuite>\n";
  }
  return out + "</testsuites>\n";
}

}  // namespace scankit::validate
