// SPDX-License-Identifier: Apache-2.0
#include "doctor/selftest/selftest.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/model/finding.h"

namespace scankit::selftest {
namespace {
using Json = nlohmann::json;

const SelftestFault& fault(const std::string& name) {
  for (const SelftestFault& entry : selftest_faults())
    if (entry.name == name) return entry;
  throw std::runtime_error("no fault " + name);
}

ProcessResult ended(int code, std::string out = "", std::string err = "") {
  ProcessResult result;
  result.exit_code = code;
  result.out = std::move(out);
  result.err = std::move(err);
  return result;
}

std::string says(const std::string& cause) {
  return cause.empty() ? R"({"verdict": "healthy", "root": null})"
                       : R"({"verdict": "broken", "root": {"cause": ")" + cause + "\"}}";
}

const ProcessResult kImportFails = ended(1, "", "Traceback\nImportError: file too short\n");

TEST(Judge, TakesTheRightAnswerAlone) {
  const SelftestFault& cut = fault("truncated");
  EXPECT_EQ(judge(cut, kImportFails, ended(kExitFindings, says("corrupt_binary"))).judgement,
            Judgement::Named);
  EXPECT_EQ(judge(cut, kImportFails, ended(kExitFindings, says("glibc_too_old"))).judgement,
            Judgement::Missed);
  EXPECT_EQ(judge(cut, kImportFails, ended(kExitClean, says(""))).judgement, Judgement::Missed);
  EXPECT_EQ(judge(cut, kImportFails, ended(kExitClean, says("corrupt_binary"))).judgement, Judgement::Missed);
  EXPECT_EQ(judge(cut, std::nullopt, ended(kExitFindings, says("corrupt_binary"))).judgement,
            Judgement::Named);
  const Trial trial = judge(cut, kImportFails, ended(kExitFindings, says("glibc_too_old")));
  EXPECT_EQ(trial.named, "glibc_too_old");
  EXPECT_EQ(trial.import_line, "ImportError: file too short");
}

TEST(Judge, TakesAnAlarmOverAHealthyModuleForAMiss) {
  const SelftestFault& good = fault("healthy");
  EXPECT_EQ(judge(good, ended(0), ended(kExitClean, says(""))).judgement, Judgement::Named);
  EXPECT_EQ(judge(good, ended(0), ended(kExitFindings, says("corrupt_binary"))).judgement, Judgement::Missed);
  EXPECT_EQ(
      judge(good, ended(0), ended(kExitInconclusive, R"({"verdict": "unknown", "root": null})")).judgement,
      Judgement::Missed);
}

TEST(Judge, DoesNotCountAFaultThatIsNone) {
  EXPECT_EQ(judge(fault("truncated"), ended(0), ended(kExitFindings, says("corrupt_binary"))).judgement,
            Judgement::NotPlanted);
  EXPECT_EQ(judge(fault("healthy"), kImportFails, ended(kExitClean, says(""))).judgement,
            Judgement::NotPlanted);
  EXPECT_EQ(judge(fault("hidden"), kImportFails, ended(kExitFindings, says("corrupt_binary"))).judgement,
            Judgement::NotPlanted);
}

TEST(Judge, SaysWhyTheDoctorGaveNoAnswer) {
  ProcessResult killed = ended(0);
  killed.signal = 11;
  for (const Result<ProcessResult>& answer :
       {Result<ProcessResult>(Error{Errc::NotFound, "gone", ""}), Result<ProcessResult>(killed),
        Result<ProcessResult>(ended(3, "no JSON", "scankit: broken")),
        Result<ProcessResult>(ended(1, "{}"))}) {
    const Trial trial = judge(fault("truncated"), kImportFails, answer);
    EXPECT_EQ(trial.judgement, Judgement::Failed);
    EXPECT_FALSE(trial.why.empty());
  }
}

TEST(SelftestFaults, NameCausesOfTheCatalogue) {
  for (const SelftestFault& entry : selftest_faults())
    EXPECT_TRUE(entry.cause.empty() || cause_from_slug(entry.cause)) << entry.name;
}

SelftestRequest request_in(const std::string& folder) {
  SelftestRequest request;
  request.folder = folder;
  request.self = "/scankit";
  request.facts.libc = Probed<LibC>::of({.kind = "glibc"});
  request.facts.python = Probed<Python>::of({.requested = "/usr/bin/python3",
                                             .executable = "/usr/bin/python3",
                                             .version = "3.11.2",
                                             .implementation = "cpython",
                                             .soabi = "cpython-311-x86_64-linux-gnu"});
  return request;
}

// The doctor under test is replaced by one that answers as it is told; the interpreter agrees with the plan.
RunCommand doctor_that_says(const std::string& cause) {
  return [cause](const ProcessRequest& request) -> Result<ProcessResult> {
    if (request.argv[0] == "/scankit") return ended(cause.empty() ? kExitClean : kExitFindings, says(cause));
    const bool works =
        request.working_directory.ends_with("/healthy") || request.working_directory.ends_with("/hidden");
    return ended(works ? 0 : 1, "", "ImportError: planted");
  };
}

TEST(Selftest, FailsWhereTheDoctorIsBlind) {
  const auto folder = TemporaryDirectory::create("selftest");
  const SelftestRequest request = request_in(folder->path());
  const auto trials = run_selftest(request, doctor_that_says(""));
  ASSERT_TRUE(trials);
  EXPECT_EQ(exit_status_of(*trials), kExitFindings);
  for (const Trial& trial : *trials)
    EXPECT_TRUE(trial.judgement == Judgement::Skipped ||
                trial.judgement == (trial.expected.empty() ? Judgement::Named : Judgement::Missed))
        << trial.fault;
  EXPECT_NE(selftest_text(request, *trials).find("MISSED    corrupt_binary, doctor reported healthy"),
            std::string::npos);
  for (const std::string_view format : report::report_formats())
    if (format != "prometheus" && format != "otlp") {  // these only count
      std::string text = report::render(format, selftest_views(request, *trials));
      std::erase(text, '\\');  // Markdown's
      EXPECT_NE(text.find("corrupt_binary"), std::string::npos) << format;
    }
  const auto missed = std::ranges::count(*trials, Judgement::Missed, &Trial::judgement);
  EXPECT_NE(report::render("junit", selftest_views(request, *trials))
                .find("failures=\"" + std::to_string(missed) + "\""),
            std::string::npos);
  EXPECT_NE(report::render("prometheus", selftest_views(request, *trials))
                .find("outcome=\"missed\"} " + std::to_string(missed)),
            std::string::npos);
}

TEST(Selftest, FailsWhereTheDoctorAlwaysSaysTheSame) {
  const auto folder = TemporaryDirectory::create("selftest");
  const auto trials = run_selftest(request_in(folder->path()), doctor_that_says("corrupt_binary"));
  ASSERT_TRUE(trials);
  EXPECT_EQ(exit_status_of(*trials), kExitFindings);
}

TEST(Selftest, IsNoProofWhereNothingWasTried) {
  EXPECT_EQ(exit_status_of({}), kExitInternal);
  EXPECT_EQ(exit_status_of({{.judgement = Judgement::Skipped}}), kExitInternal);
  EXPECT_EQ(exit_status_of({{.judgement = Judgement::Named}, {.judgement = Judgement::Failed}}),
            kExitInternal);
}

TEST(Selftest, GivesTheJsonOfItsSchema) {
  const auto folder = TemporaryDirectory::create("selftest");
  const SelftestRequest request = request_in(folder->path());
  const auto trials = run_selftest(request, doctor_that_says(""));
  ASSERT_TRUE(trials);
  std::ifstream file(SCANKIT_SOURCE_DIR "/doctor/report/schema/selftest-1.json");
  const Json schema = Json::parse(file), json = Json::parse(selftest_json(request, *trials));
  EXPECT_EQ(json["$schema"], schema["$id"]);
  EXPECT_EQ(json["verdict"], "failed");
  const auto same = [](const Json& value, const Json& described) {
    EXPECT_EQ(value.size(), described["properties"].size());
    for (const Json& key : described["required"]) EXPECT_TRUE(value.contains(key.get<std::string>())) << key;
  };
  same(json, schema);
  for (const Json& entry : json["faults"]) same(entry, schema["properties"]["faults"]["items"]);
}

}  // namespace
}  // namespace scankit::selftest
