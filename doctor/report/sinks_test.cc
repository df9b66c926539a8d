// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "doctor/report/doctor_document.h"
#include "doctor/report/document.h"
#include "doctor/report/escape.h"
#include "doctor/report/report_test.h"
#include "doctor/report/words.h"

namespace scankit::report {
namespace {
using Json = nlohmann::json;

constexpr const char* kHostile =
    "a|b`c`<script>alert(1)</script>&\"'%0A::error::x\x1b[31m\r\n\xff\xEF\xBF\xBF ]]> @you #1 \xE2\x80\xAE";

struct RenderOptions {
  bool verbose = false;
  int exit_status = 0;
};

std::string render(std::string_view format, const Report& report, const RenderOptions& options) {
  return scankit::report::render(format, doctor_views(report, options.exit_status), options.verbose);
}

Report hostile() {
  Report report = report_of("torch_symbols_resolve.old_wheel");
  report.snapshot.torch.value.version = report.snapshot.python.value.requested = kHostile;
  report.snapshot.python.value.kind = kHostile;
  for (Extension& file : report.snapshot.extensions.value) file.path = kHostile;
  for (Finding& finding : report.findings) {
    finding.subject = finding.module = kHostile;
    finding.summary = kHostile;
    for (Evidence& evidence : finding.evidence) evidence.fact = evidence.value = kHostile;
    finding.fixes = {Advice{kHostile}, RemoveShadow{kHostile}, InstallPackages{{kHostile}},
                     SetEnvironment{kHostile, kHostile}};
  }
  for (Outcome& outcome : report.outcomes) {
    outcome.why = outcome.question = kHostile;
    outcome.not_checked = {kHostile};
    outcome.findings = report.findings;
  }
  return report;
}

std::size_t count(const std::string& text, const std::string& wanted) {
  std::size_t found = 0;
  for (auto at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1)) ++found;
  return found;
}

// OTLP demands a time with each value, and no other sink has one.
std::string timeless(std::string text) {
  const std::string key = "\"timeUnixNano\": \"";
  for (auto at = text.find(key); at != std::string::npos; at = text.find(key, at + key.size()))
    text.erase(at + key.size(), text.find('"', at + key.size()) - at - key.size());
  return text;
}

TEST(EverySink, CarriesTheRootAndIsTheSameTwice) {
  for (const std::string_view format : report_formats()) {
    const Report report = report_of("torch_symbols_resolve.old_wheel");
    const std::string once = render(format, report, {});
    EXPECT_NE(once.find("torch_version_mismatch"), std::string::npos) << format;
    const std::string twice = render(format, report_of("torch_symbols_resolve.old_wheel"), {});
    EXPECT_EQ(timeless(once), timeless(twice)) << format;
    EXPECT_TRUE(once.ends_with("\n")) << format;
  }
}

TEST(EverySink, CarriesNothingThatReordersWhatIsRead) {
  for (const std::string_view format : report_formats())
    EXPECT_EQ(render(format, hostile(), {}).find("\xE2\x80\xAE"), std::string::npos) << format;
  EXPECT_EQ(Json::parse(doctor_json(hostile()))["python"].get<std::string>().find("a|b`c`"), 0u);
}

TEST(EverySink, SaysWhatTheAnswerHoldsFor) {
  Snapshot snapshot = snapshot_of("torch_symbols_resolve.old_wheel");
  snapshot.read_from = "stored-facts";
  snapshot.target_root = "/unpacked-image";
  snapshot.named_files = {"wheel-one", "wheel-two"};
  snapshot.described = {"GPU sm_90"};
  const Report report = report_of(std::move(snapshot));
  for (const std::string_view format : report_formats()) {
    std::string text = render(format, report, {});
    std::erase(text, '\\');  // Markdown's
    for (const char* part : {"stored-facts", "/unpacked-image", "wheel-one", "wheel-two", "sm_90"})
      EXPECT_NE(text.find(part), std::string::npos) << format << " " << part;
  }
}

TEST(TextForPeople, LeavesOutWhatNobodyAskedFor) {
  const Report report = report_of("torch_symbols_resolve.old_wheel");
  const auto skipped = std::ranges::count(report.outcomes, true, &Outcome::not_asked);
  EXPECT_GE(skipped, 2);  // a wheel and a log
  for (const char* format : {"text", "markdown", "html"}) {
    const std::string text = render(format, report, {});
    EXPECT_EQ(text.find("no wheel was given"), std::string::npos) << format;
    EXPECT_EQ(text.find("no log was given"), std::string::npos) << format;
  }
  EXPECT_NE(render("text", report, {.verbose = true}).find("no wheel was given"), std::string::npos);
  EXPECT_NE(render("json", report, {}).find("no wheel was given"), std::string::npos);

  Snapshot without_python = snapshot_of("torch_symbols_resolve.old_wheel");
  without_python.wheels.push_back({.path = "/x.whl"});
  without_python.python = Probed<Python>::absent("none here");
  EXPECT_NE(render("text", report_of(std::move(without_python)), {}).find("Python  none here"),
            std::string::npos);
}

TEST(EverySink, LetsNoControlByteOrEscapeThrough) {
  for (const std::string_view format : report_formats()) {
    const std::string text = render(format, hostile(), {.verbose = true});
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      ASSERT_TRUE(byte >= 0x20 || c == '\n') << format << " " << int{byte};
    }
    EXPECT_EQ(text.find('\xff'), std::string::npos) << format;
    if (format != "json") {
      EXPECT_EQ(text.find("\xE2\x80\xAE"), std::string::npos) << format;
    }
  }
}

TEST(EverySink, ShowsWhatAllFound) {
  for (const std::string_view format : report_formats()) {
    const std::string text =
        render(format, report_of("every_extension_loads.old_torch_module"), {.verbose = true});
    EXPECT_NE(text.find("_ZN3c1010gone_thingEv"), std::string::npos) << format;
    EXPECT_NE(text.find(format == "json"    ? "would-fail"
                        : format == "junit" ? "name=\"extensions\" tests=\"1\" failures=\"1\""
                                            : "would fail"),
              std::string::npos)
        << format;
    const std::string without = render(format, report_of("torch_symbols_resolve.old_wheel"), {});
    EXPECT_EQ(without.find("would fail,"), std::string::npos) << format;
    EXPECT_EQ(without.find("would-fail"), std::string::npos) << format;
  }
}

TEST(EverySink, ShowsWhichTorchAFileWasBuiltFor) {
  Report report = report_of("every_extension_loads.old_torch_module");
  BuiltFor built_for;
  built_for.torch_min = "2.3";
  built_for.torch_max = "2.6";
  built_for.dated = true;
  built_for.string_abi = "old";
  built_for.torch_names = 40;
  AuditedFile& audited = report.snapshot.audit.value.files.front();
  audited.built_for = built_for;
  audited.built_for.file = audited.path;
  built_for.file = "/w/wheel.whl";
  built_for.together = 3;
  built_for.torch_min = "2.4";
  report.snapshot.built_for = {built_for};
  for (const std::string_view format : {"text", "markdown", "html", "json"}) {
    const std::string text = render(format, report, {});
    const bool json = format == "json";
    EXPECT_NE(text.find(json ? "\"torch_min\": \"2.3\"" : "built for torch 2.3 to 2.6, pre-CXX11 ABI"),
              std::string::npos)
        << format;
    EXPECT_NE(text.find(json ? "\"torch_min\": \"2.4\"" : "built for torch 2.4 to 2.6, pre-CXX11 ABI"),
              std::string::npos)
        << format;
    EXPECT_NE(text.find("/w/wheel.whl"), std::string::npos) << format;
  }
}

TEST(EverySink, LetsNoByteOfAnAuditedFileThrough) {
  Report report = report_of("every_extension_loads.old_torch_module");
  AuditedFile file;
  file.path = file.distribution = file.file_state = kHostile;
  file.file_detail = kHostile;
  file.built_for.file = file.built_for.string_abi = kHostile;
  file.built_for.why_not_narrower = kHostile;
  file.built_for.torch_names = 1;
  file.built_for.releases = {kHostile};
  report.snapshot.audit.value.files.push_back(file);
  report.snapshot.audit.value.unreadable = {kHostile};
  for (const std::string_view format : report_formats()) {
    const std::string text = render(format, report, {.verbose = true});
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      ASSERT_TRUE(byte >= 0x20 || c == '\n') << format << " " << int{byte};
    }
    if (format == "html" || format == "markdown" || format == "junit") {
      EXPECT_EQ(text.find("<script"), std::string::npos) << format;
    }
    if (format != "json") {
      EXPECT_EQ(text.find("\xE2\x80\xAE"), std::string::npos) << format;
    }
  }
}

TEST(Html, RunsNothingOfAReport) {
  const std::string html = render("html", hostile(), {});
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find("http://"), std::string::npos);
  EXPECT_EQ(html.find("https://"), std::string::npos);
  EXPECT_NE(html.find("&lt;script&gt;"), std::string::npos);
}

TEST(Junit, CountsWhatItHolds) {
  const Report report = report_of("torch_symbols_resolve.old_wheel");
  const std::string xml = render("junit", report, {});
  EXPECT_EQ(count(xml, "<testcase "), report.outcomes.size());
  const std::string head = xml.substr(0, xml.find("<testsuite "));
  EXPECT_NE(head.find("tests=\"" + std::to_string(report.outcomes.size()) + "\""), std::string::npos);
  EXPECT_NE(head.find("failures=\"" + std::to_string(count(xml, "<failure ")) + "\""), std::string::npos);
  EXPECT_NE(head.find("errors=\"" + std::to_string(count(xml, "<error ")) + "\""), std::string::npos);
}

TEST(Junit, TakesAnOpenQuestionForAnErrorOnlyWhereItCouldHideOne) {
  Report report;
  report.outcomes = {{.check = "a", .question = "A?", .state = CheckState::Unknown, .why = "no facts"},
                     {.check = "b",
                      .question = "B?",
                      .state = CheckState::Unknown,
                      .why = "no facts",
                      .could_hide_error = true},
                     {.check = "c", .question = "C?", .state = CheckState::Crashed, .why = "bug"},
                     {.check = "d", .question = "D?", .state = CheckState::NotApplicable, .why = "no GPU"},
                     {.check = "e", .question = "E?", .state = CheckState::Passed}};
  const std::string xml = render("junit", report, {});
  EXPECT_NE(xml.find("tests=\"5\" failures=\"0\" errors=\"2\""), std::string::npos) << xml;
  EXPECT_NE(xml.find("<skipped message=\"unknown: no facts\">"), std::string::npos);
  EXPECT_NE(xml.find("<skipped message=\"no GPU\">"), std::string::npos);
}

TEST(Sarif, HasStableRulesAndDistinctFingerprints) {
  Report report = report_of("torch_symbols_resolve.old_wheel");
  report.findings.push_back(report.findings[0]);
  const Json run = Json::parse(render("sarif", report, {.exit_status = 1}))["runs"][0];
  const Json& rules = run["tool"]["driver"]["rules"];
  std::set<std::string> prints;
  for (const Json& result : run["results"]) {
    EXPECT_EQ(rules[result["ruleIndex"].get<std::size_t>()]["id"], result["ruleId"]);
    EXPECT_TRUE(prints.insert(result["partialFingerprints"]["scankitFinding/v1"]).second);
    const std::string uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    EXPECT_TRUE(uri.starts_with("file:///")) << uri;
  }
  EXPECT_EQ(run["results"].size(), report.findings.size());
  EXPECT_EQ(run["invocations"][0]["exitCode"], 1);
  EXPECT_EQ(run["invocations"][0]["executionSuccessful"], true);
  EXPECT_EQ(file_uri("/a b/\xC3\xA9#?"), "file:///a%20b/%C3%A9%23%3F");
}

TEST(Github, KeepsToTenOfALevelAndLosesNone) {
  Report report;
  for (int i = 0; i < 25; ++i)
    report.findings.push_back({.cause = Cause::MissingCudart, .subject = "f" + std::to_string(i)});
  report.verdict = Verdict::Broken;
  const std::string text = render("github", report, {});
  EXPECT_EQ(count(text, "::error "), 10u);
  EXPECT_NE(text.find("title=scankit%3A 16 more::"), std::string::npos) << text;
  EXPECT_NE(text.find("f24"), std::string::npos);
  std::istringstream lines(render("github", hostile(), {}));
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(line.starts_with("::error ") || line.starts_with("::warning ") ||
                line.starts_with("::notice "))
        << line;
}

TEST(Prometheus, HasEachSampleOnceAndClosesEveryLabel) {
  Report report = hostile();
  report.findings.push_back(report.findings[0]);
  report.asked = Asked::Gate;
  report.steps = {{"doctor", 1, 0.25}, {"env check", 7, 1.5}};
  const std::string text = render("prometheus", report, {.exit_status = 1});
  EXPECT_NE(text.find("scankit_exit_status{command=\"ci run\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("scankit_step_exit_status{command=\"ci run\",step=\"env check\"} 7\n"),
            std::string::npos);
  EXPECT_NE(text.find("scankit_step_seconds{command=\"ci run\",step=\"doctor\"} 0.250\n"), std::string::npos);
  EXPECT_EQ(prometheus_label("a\\b\"c\nd"), "a\\\\b\\\"c d");
  std::set<std::string> samples, helped;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# HELP ")) {
      EXPECT_TRUE(helped.insert(line.substr(0, line.find(' ', 7))).second) << line;
    }
    if (line.starts_with("#")) continue;
    const auto end = line.rfind("} ");
    ASSERT_NE(end, std::string::npos) << line;
    EXPECT_TRUE(samples.insert(line.substr(0, end)).second) << line;
  }
}

TEST(Otlp, HasTheSamplesOfPrometheusWithATime) {
  Document document{.command = "fleet",
                    .metrics = {{"fleet_nodes",
                                 "Nodes",
                                 {{{{"verdict", "passed"}}, "3"},
                                  {{{"verdict", "passed"}}, "4"},
                                  {{{"verdict", "a\x1b\"b"}}, "0.5"}}},
                                {"fleet_outlier", "No sample", {}}},
                    .tool_version = "1.2.3"};
  const Json request = Json::parse(otlp_at(document, 1'795'826'553'448'000'000));
  const Json& resource = request["resourceMetrics"][0];
  EXPECT_EQ(resource["resource"]["attributes"][1]["value"]["stringValue"], "1.2.3");
  const Json& metrics = resource["scopeMetrics"][0]["metrics"];
  ASSERT_EQ(metrics.size(), 1u) << "a metric without a sample is left out";
  EXPECT_EQ(metrics[0]["name"], "scankit_fleet_nodes");
  const Json& points = metrics[0]["gauge"]["dataPoints"];
  ASSERT_EQ(points.size(), 2u) << "a series occurs once";
  EXPECT_EQ(points[0]["timeUnixNano"], "1795826553448000000");
  EXPECT_EQ(points[0]["asDouble"], 3.0);
  EXPECT_EQ(points[0]["attributes"][0]["value"]["stringValue"], "fleet");
  EXPECT_EQ(points[1]["attributes"][1]["key"], "verdict");
  EXPECT_EQ(points[1]["asDouble"], 0.5);
}

TEST(ReadJson, IsTheInverseOfTheAnswer) {
  for (const char* name : {"torch_symbols_resolve.old_wheel", "file_is_whole.vanished"}) {
    const Report report = report_of(name);
    const auto outcomes = outcomes_from_json(doctor_json(report), kDoctorSchema);
    ASSERT_TRUE(outcomes) << english(outcomes.error().message);
    Report again;
    again.snapshot = report.snapshot;
    again.outcomes = *outcomes;
    checks::decide_root_cause(again);
    EXPECT_EQ(doctor_json(again), doctor_json(report)) << name;
  }
}

TEST(ReadJson, RefusesWhatIsNotWhole) {
  const std::string text = doctor_json(report_of("torch_symbols_resolve.old_wheel"));
  EXPECT_EQ(outcomes_from_json(text.substr(0, text.size() / 2), kDoctorSchema).error().code, Errc::Malformed);
  EXPECT_EQ(outcomes_from_json("", kDoctorSchema).error().code, Errc::Malformed);
  EXPECT_EQ(outcomes_from_json("[]", kDoctorSchema).error().code, Errc::Unsupported);
  EXPECT_EQ(outcomes_from_json(text, kDriftSchema).error().code, Errc::Unsupported);
  Json json = Json::parse(text);
  json["checks"] = Json::array();
  EXPECT_EQ(outcomes_from_json(json.dump(), kDoctorSchema).error().code, Errc::Malformed);
  json = Json::parse(text);
  json["findings"][0]["cause"] = "cause_of_the_future";
  EXPECT_EQ(outcomes_from_json(json.dump(), kDoctorSchema).error().code, Errc::Unsupported);
}

TEST(Markdown, LeavesTextOfAFileText) {
  EXPECT_EQ(markdown_escaped("<b>|@you #1 http://x"),
            "&lt;b&gt;\\|<code>@</code>you <code>#</code>1 http<code>://</code>x");
  EXPECT_EQ(markdown_code("a`b``c"), "```a`b``c```");
  EXPECT_EQ(markdown_code("`a`"), "`` `a` ``");
  EXPECT_EQ(markdown_code("a|b"), "<code>a\\|b</code>");
  const std::string text = render("markdown", hostile(), {});
  EXPECT_EQ(text.find("<script"), std::string::npos);
  // Every table row of a hostile cell still has its two columns.
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool row = line.starts_with("| ");
    EXPECT_TRUE(!row || count(line, "|") - count(line, "\\|") == 3u) << line;
  }
}

TEST(Families, AreFoundByTheStartOfTheId) {
  EXPECT_EQ(family("torch-has-cuda"), "torch");
  EXPECT_EQ(family("gpu-arch-covered"), "gpu");
  EXPECT_EQ(family("something-new"), "environment");
}

}  // namespace
}  // namespace scankit::report
