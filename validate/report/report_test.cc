// SPDX-License-Identifier: Apache-2.0
#include "validate/report/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace scankit::validate {
namespace {

Validation failed_run() {
  Validation v;
  v.python = "/venv/bin/python";
  v.python_version = "3.11.7";
  v.torch_version = "2.11.0";
  v.module = "selective_scan_cuda";
  v.mode = "quick";
  v.seed = 42;
  v.verdict = Verdict::Failed;
  for (int i = 0; i < 3; ++i) {
    CaseResult c;
    c.id = "q00" + std::to_string(i);
    c.device = "cpu";
    c.state = CaseState::Failed;
    c.error = "TypeError: fwd() takes 3 positional arguments";
    c.reasons = {c.error};
    v.cases.push_back(c);
  }
  v.cases[2].error.clear();
  v.cases[2].reasons = {"dA: too far"};
  v.cases[2].tensors.push_back({"dA", "float32", 1, INFINITY, 0, 1e-4, {{0}, NAN, 1, 1e-4, INFINITY}});
  return v;
}

TEST(ValidateReport, TellsOneErrorOfManyCasesOnceWithItsReproducer) {
  const std::string text = text_report(failed_run(), {});
  const std::string error = "TypeError: fwd() takes 3 positional arguments";
  EXPECT_EQ(text.find(error), text.rfind(error));
  EXPECT_NE(text.find("(the same error in 1 other case)"), std::string::npos);
  EXPECT_NE(
      text.find(
          "scankit validate --python /venv/bin/python --module selective_scan_cuda --seed 42 --device cpu "
          "--case q002"),
      std::string::npos);
  EXPECT_NE(text.find("cpu      0 of 3 cases passed, 3 failed"), std::string::npos);
}

TEST(ValidateReport, TheVerdictSaysWhatFailed) {
  Validation v = failed_run();
  v.module = "m", v.mode = "quick", v.seconds = 8.2, v.verdict = Verdict::Failed;
  const std::string count = std::to_string(v.cases.size());
  EXPECT_EQ(verdict_line(v), "FAILED: " + count + " of " + count + " cases of m failed (quick, 8.2 s)");
  v.cases.clear();
  EXPECT_EQ(verdict_line(v), "FAILED: m is slower than its baseline (quick, 8.2 s)");
  v.module_problem = ModuleProblem::LacksFunctions;
  EXPECT_EQ(verdict_line(v), "FAILED: m lacks functions that it must have (quick, 8.2 s)");
  v.module_problem = ModuleProblem::ImportFailed;
  EXPECT_EQ(verdict_line(v), "FAILED: m cannot be imported (quick, 8.2 s)");
  v.verdict = Verdict::Passed;
  EXPECT_EQ(verdict_line(v), "PASSED: the results of m are correct (quick, 8.2 s)");
  v.verdict = Verdict::Inconclusive;
  EXPECT_EQ(verdict_line(v), "INCONCLUSIVE: m was not validated to the end (quick, 8.2 s)");
}

TEST(ValidateReport, WhatDoesNotImportNamesTheCommandThatSaysWhy) {
  Validation v;
  v.module = "m", v.python = "/my v/bin/python", v.blocked = "torch cannot be imported: gone";
  const std::string hint = "to find out why: scankit doctor --python '/my v/bin/python'\n";
  EXPECT_EQ(text_report(v, {}).find(hint), std::string::npos);
  v.torch_import_failed = true;
  EXPECT_NE(text_report(v, {}).find(hint), std::string::npos);
  v.torch_import_failed = false;
  v.module_problem = ModuleProblem::ImportFailed;
  EXPECT_NE(text_report(v, {}).find(hint), std::string::npos);
}

TEST(ValidateReport, JsonHoldsEveryCaseAndNoNumberThatJsonLacks) {
  const auto json = nlohmann::json::parse(json_report(failed_run()));
  EXPECT_EQ(json["verdict"], "failed");
  EXPECT_EQ(json["cases"].size(), 3u);
  EXPECT_EQ(json["cases"][2]["tensors"][0]["error"], "inf");
  EXPECT_EQ(json["cases"][2]["tensors"][0]["worst"]["value"], "nan");
  EXPECT_TRUE(json["gpu"].is_null());
}

TEST(ValidateReport, EveryFormatNamesTheFailedCase) {
  Validation v = failed_run();
  v.cases[1].state = CaseState::Crashed;
  v.module = "<script>";
  for (const std::string_view format : report::report_formats()) {
    const std::string text = report::render(format, validation_views(v, 6));
    const char* wanted = format == "prometheus" ? "state=\"crashed\"} 1"
                         : format == "otlp"     ? "\"stringValue\": \"crashed\""
                                                : "q002";
    EXPECT_NE(text.find(wanted), std::string::npos) << format;
    if (format == "html" || format == "junit") {
      EXPECT_EQ(text.find("<script>"), std::string::npos) << format;
    }
  }
  const std::string junit = report::render("junit", validation_views(v, 6));
  EXPECT_NE(junit.find("tests=\"3\" failures=\"2\" errors=\"1\""), std::string::npos) << junit;
  const auto run = nlohmann::json::parse(report::render("sarif", validation_views(v, 6)))["runs"][0];
  EXPECT_EQ(run["results"].size(), 3u);
  EXPECT_EQ(run["results"][1]["ruleId"], "crashed");
  EXPECT_EQ(run["invocations"][0]["exitCode"], 6);
  EXPECT_NE(report::render("github", validation_views(v, 6))
                .find("::error title=scankit%3A wrong_result::cpu q000"),
            std::string::npos);
}

TEST(ValidateReport, TextIsFitForATerminal) {
  Validation v = failed_run();
  v.notes = {"a\x1b[31mb"};
  EXPECT_EQ(text_report(v, {}).find('\x1b'), std::string::npos);
  EXPECT_EQ(text_report(v, {.quiet = true}), verdict_line(v) + "\n");
}

TEST(ValidateReport, BytesThatAreNoUtf8DoNotBreakTheJson) {
  Validation v = failed_run();
  v.notes = {"bad \xff byte"};
  EXPECT_EQ(nlohmann::json::parse(json_report(v))["notes"].size(), 1u);
}

}  // namespace
}  // namespace scankit::validate
