// SPDX-License-Identifier: Apache-2.0
// Every file of doctor/tests/cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "doctor/checks/check.h"
#include "doctor/checks/recorded_cases.h"
#include "doctor/checks/root_cause.h"
#include "doctor/model/snapshot_json.h"

namespace scankit {
namespace {
using Json = nlohmann::json;

std::string check_of(const std::string& case_name) {
  std::string id = case_name.substr(0, case_name.find('.'));
  std::ranges::replace(id, '_', '-');
  return id;
}

const char* word(Verdict verdict) {
  if (verdict == Verdict::Healthy) return "healthy";
  if (verdict == Verdict::Empty) return "empty";
  return verdict == Verdict::Broken ? "broken" : "unknown";
}

std::vector<std::string> errors(const Report& report) {
  std::vector<std::string> slugs;
  for (const Finding& finding : report.findings)
    if (finding.severity() == Severity::Error) slugs.emplace_back(info(finding.cause).slug);
  return slugs;
}

class Cases : public ::testing::TestWithParam<std::string> {};

TEST_P(Cases, FindExactlyTheExpectedCauses) {
  const Json test = case_file(GetParam());
  const Report report = diagnosed(test);
  EXPECT_EQ(errors(report), test.at("expect").get<std::vector<std::string>>());
  EXPECT_EQ(word(report.verdict), test.at("verdict").get<std::string>());

  std::vector<std::string> unknown;
  for (const Outcome& outcome : report.outcomes)
    if (outcome.state == CheckState::Unknown && outcome.could_hide_error) unknown.push_back(outcome.check);
  std::ranges::sort(unknown);
  auto expected = test.value("unknown", std::vector<std::string>());
  std::ranges::sort(expected);
  EXPECT_EQ(unknown, expected);

  for (const std::string& slug : test.value("also", std::vector<std::string>()))
    EXPECT_TRUE(std::ranges::any_of(report.findings, [&](const Finding& finding) {
      return info(finding.cause).slug == slug && finding.severity() != Severity::Error;
    })) << slug;
}

TEST_P(Cases, ClaimNothingThatTheSnapshotDoesNotHold) {
  const Report report = diagnosed(case_file(GetParam()));
  for (const Finding& finding : report.findings) {
    EXPECT_FALSE(finding.evidence.empty()) << finding.summary;
    EXPECT_FALSE(finding.subject.empty() || finding.module.empty() || finding.summary.empty());
    for (const Evidence& evidence : finding.evidence) {
      const auto fact = snapshot_fact(report.snapshot, evidence.fact);
      ASSERT_TRUE(fact) << finding.summary << ": " << evidence.fact;
      EXPECT_EQ(*fact, evidence.value) << evidence.fact;
    }
  }
}

TEST_P(Cases, HangEverySymptomOnACauseThatIsThere) {
  const Report report = diagnosed(case_file(GetParam()));
  std::set<std::string> seen;
  for (const Finding& finding : report.findings) {
    if (finding.because_of) {
      EXPECT_TRUE(seen.contains(std::string(info(*finding.because_of).slug))) << info(finding.cause).slug;
    }
    seen.insert(std::string(info(finding.cause).slug));
  }
}

TEST_P(Cases, AreTheSameAfterTheSnapshotWasStored) {
  const Report first = diagnosed(case_file(GetParam()));
  const auto stored = snapshot_from_json(snapshot_to_json(first.snapshot));
  ASSERT_TRUE(stored);
  Report second = diagnose(*stored);
  EXPECT_EQ(errors(first), errors(second));
  EXPECT_EQ(first.verdict, second.verdict);
}

INSTANTIATE_TEST_SUITE_P(Doctor, Cases, ::testing::ValuesIn(case_names()), [](const auto& test) {
  std::string name = test.param;
  std::ranges::replace(name, '.', '_');
  return name;
});

// A check without a case that fires, or without one that stays silent, is not tested.
TEST(Checks, HaveACaseThatFiresAndOneThatStaysSilent) {
  std::set<std::string> fire, silent;
  for (const std::string& name : case_names()) {
    const std::string id = check_of(name);
    const Report report = diagnosed(case_file(name));
    for (const Outcome& outcome : report.outcomes) {
      if (outcome.check != id) continue;
      // A warning of a cause that is otherwise an error is raised; a note of one is told on the way.
      const bool raised = std::ranges::any_of(outcome.findings, [](const Finding& f) {
        return f.severity() == info(f.cause).severity || f.severity() != Severity::Note;
      });
      // scankit's own state is no class of faults: a line says what settles it.
      const bool told = id == "repairs-finished" && !outcome.not_checked.empty();
      if (raised || told || outcome.state == CheckState::Unknown) fire.insert(id);
      if (!raised && !told && outcome.state != CheckState::Unknown) silent.insert(id);
    }
  }
  for (const Check* check : all_checks()) {
    EXPECT_TRUE(fire.contains(std::string(check->id))) << check->id;
    EXPECT_TRUE(silent.contains(std::string(check->id))) << check->id;
  }
}

TEST(Checks, HaveIdsOfTheirOwnAndAQuestion) {
  std::set<std::string_view> ids;
  for (const Check* check : all_checks()) {
    EXPECT_TRUE(ids.insert(check->id).second) << check->id;
    EXPECT_TRUE(check->question.ends_with("?")) << check->id;
    EXPECT_NE(check->run, nullptr);
  }
  for (const std::string& name : case_names()) EXPECT_TRUE(ids.contains(check_of(name))) << name;
}

TEST(Checks, NeverPassOnFactsThatAreMissing) {
  for (const ProbeState state : {ProbeState::NotRun, ProbeState::Failed}) {
    Snapshot nothing;
    nothing.modules = {"selective_scan_cuda"};
    nothing.python.state = nothing.torch.state = nothing.extensions.state = nothing.importers.state =
        nothing.gpus.state = state;
    Report report = diagnose(nothing);
    for (const Outcome& outcome : report.outcomes)
      EXPECT_NE(outcome.state, CheckState::Passed) << outcome.check;
    EXPECT_EQ(report.verdict, Verdict::Unknown);
  }
}

TEST(Checks, ThatThrowAreReportedAsCrashed) {
  const Check throws{.id = "throws", .question = "?", .run = [](const Snapshot&) -> CheckResult {
                       throw std::runtime_error("bug");
                     }};
  const Outcome outcome = run_check(throws, Snapshot{});
  EXPECT_EQ(outcome.state, CheckState::Crashed);
  EXPECT_EQ(outcome.why, "bug");
  EXPECT_TRUE(outcome.could_hide_error);
}

}  // namespace
}  // namespace scankit
