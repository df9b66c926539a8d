// SPDX-License-Identifier: Apache-2.0
// Every file of doctor/tests/cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/checks/check.h"
#include "doctor/checks/recorded_cases.h"
#include "doctor/model/snapshot.h"
#include "doctor/report/fixes.h"

namespace scankit::checks {
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

// What one check made of a machine, without its findings.
std::string state_of(const Outcome& outcome) {
  static const char* const kStates[] = {"passed", "found", "not applicable", "unknown", "crashed"};
  std::string text = kStates[static_cast<int>(outcome.state)];
  if (outcome.could_hide_error) text += ", could hide an error";
  if (outcome.not_asked) text += ", not asked";
  if (outcome.left_out) text += ", left out";
  if (!outcome.why.empty()) text += ": " + english(outcome.why);
  for (const Message& part : outcome.not_checked) text += "\n    not checked: " + english(part);
  return text;
}

std::string finding_text(const Finding& finding, const Snapshot& snapshot) {
  static const char* const kSeverities[] = {"note", "warning", "error"};
  std::string text = "  " + std::string(kSeverities[static_cast<int>(finding.severity())]) + " " +
                     std::string(info(finding.cause).slug) + " of " + finding.module + ": " +
                     finding.subject + "\n";
  if (finding.because_of) text += "    because of " + std::string(info(*finding.because_of).slug) + "\n";
  text += "    " + english(finding.summary) + "\n";
  for (const Evidence& each : finding.evidence) text += "    fact: " + each.fact + "\n";
  for (const Fix& fix : finding.fixes) {
    text += "    fix: " + report::fix_sentence(fix, snapshot) + "\n";
    if (const std::string command = report::fix_command(fix, snapshot); !command.empty())
      text += "      " + command + "\n";
  }
  return text;
}

// What there is to say of one machine, piece by piece: each finding, in the order of the report, and the state of each
// check.
std::vector<std::string> pieces_of(const Report& report) {
  std::vector<std::string> pieces;
  for (const Finding& finding : report.findings) pieces.push_back(finding_text(finding, report.snapshot));
  for (const Outcome& outcome : report.outcomes)
    pieces.push_back("  " + outcome.check + ": " + state_of(outcome) + "\n");
  pieces.push_back(std::string("  verdict: ") + word(report.verdict) + "\n");
  // The site-packages directory of the recorded machines, as the cases call it.
  constexpr std::string_view kSite = "/home/user/project/.venv/lib/python3.11/site-packages";
  for (std::string& piece : pieces)
    for (std::size_t at = 0; (at = piece.find(kSite, at)) != std::string::npos;)
      piece.replace(at, kSite.size(), "$SITE");
  return pieces;
}

// The pieces that are not among the `usual` ones, and the first lines of findings that are gone.
std::string what_is_new(const std::vector<std::string>& pieces, const std::vector<std::string>& usual) {
  std::string text;
  for (const std::string& piece : pieces)
    if (std::ranges::find(usual, piece) == usual.end()) text += piece;
  for (const std::string& piece : usual)
    if (std::ranges::count(piece, '\n') > 1 && std::ranges::find(pieces, piece) == pieces.end())
      text += "  gone:" + piece.substr(1, piece.find('\n'));
  return text;
}

// The pieces of an unchanged machine.
const std::vector<std::string>& unchanged(const std::string& base) {
  static std::map<std::string, std::vector<std::string>> machines;
  const auto [at, fresh] = machines.try_emplace(base);
  if (fresh) at->second = pieces_of(diagnosed(Json{{"base", base}}));
  return at->second;
}

// The answer to a case is what is new against its machine, that to a variant what is new against its case.
std::string answers(const std::string& case_name) {
  const Json test = case_file(case_name);
  const std::vector<std::string> answer = pieces_of(diagnosed(test));
  std::string text = case_name.substr(case_name.find('.') + 1) + ":\n";
  text += what_is_new(answer, unchanged(test.value("base", std::string("cpu_torch211"))));
  for (const Json& changes : test.value("variants", Json::array())) {
    Json variant = test;
    for (const auto& [pointer, value] : changes.items()) variant["at"][pointer] = value;
    text += " and " + changes.dump() + ":\n" + what_is_new(pieces_of(diagnosed(variant)), answer);
  }
  return text + "\n";
}

// "file_is_whole" for each file of cases, and "machines".
std::vector<std::string> answer_files() {
  std::set<std::string> files = {"machines"};
  for (const std::string& name : case_names()) files.insert(name.substr(0, name.find('.')));
  return {files.begin(), files.end()};
}

// SCANKIT_UPDATE_GOLDEN=1 writes the files; review them as a diff.
class Answers : public ::testing::TestWithParam<std::string> {};

TEST_P(Answers, AreThoseOfTheGoldenFile) {
  std::string text;
  if (GetParam() == "machines")
    for (const char* base : {"cpu_torch211", "h200_torch211", "sources_torch211"})
      text += std::string(base) + ":\n" + what_is_new(unchanged(base), {}) + "\n";
  for (const std::string& name : case_names())
    if (name.starts_with(GetParam() + ".")) text += answers(name);
  const std::string path = SCANKIT_SOURCE_DIR "/doctor/tests/golden/cases/" + GetParam() + ".txt";
  if (std::getenv("SCANKIT_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  EXPECT_EQ(text, read_whole_file(path).value_or("")) << path;
}

INSTANTIATE_TEST_SUITE_P(Doctor, Answers, ::testing::ValuesIn(answer_files()),
                         [](const auto& test) { return test.param; });

TEST(AnswerFiles, AreAllOfACheck) {
  const std::vector<std::string> files = answer_files();
  for (const auto& entry :
       std::filesystem::directory_iterator(SCANKIT_SOURCE_DIR "/doctor/tests/golden/cases"))
    EXPECT_NE(std::ranges::find(files, entry.path().stem().string()), files.end()) << entry.path();
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

// A language in which every sentence can be told from an English one.
class Brackets : public Language {
 public:
  std::optional<std::string_view> sentence(std::string_view english) const override {
    return *said_.insert("<" + std::string(english) + ">").first;
  }
  std::optional<std::string_view> counted(std::string_view one, std::size_t) const override {
    return sentence(one);
  }
  std::string_view code() const override { return "xx"; }

 private:
  mutable std::set<std::string> said_;
};

// A check that calls say() stores words of one language: a report in another, and the JSON, would quote them.
TEST(AllCases, AreJudgedTheSameInEveryLanguage) {
  for (const std::string& name : case_names()) {
    const Json test = case_file(name);
    Report report;
    {
      const Brackets brackets;
      const Speaking speaking(&brackets);
      report = diagnosed(test);
    }
    EXPECT_EQ(pieces_of(report), pieces_of(diagnosed(test))) << name;
  }
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
}  // namespace scankit::checks
