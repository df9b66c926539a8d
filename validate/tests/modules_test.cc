// SPDX-License-Identifier: Apache-2.0
// Deliberately wrong modules, each of which must be caught and named, and a right one, which must pass. Real
// children of a real Python with a real torch.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "validate/judge/judge.h"
#include "validate/run/run.h"
#include "validate/tests/test_python.h"

namespace scankit::validate {
namespace {

// A few small cases with every option among them: a process and an import of torch are the larger part of
// each test.
std::vector<Case> small_cases() {
  static const std::set<std::string> kNumbers = {"q000", "q001", "q004", "q007", "q008", "q009",
                                                 "q010", "q011", "q013", "q014", "q018", "q029",
                                                 "h000", "h001", "h002", "h003"};
  std::vector<Case> cases = quick_cases(99);
  for (Case& c : hostile_cases(99)) cases.push_back(std::move(c));
  std::erase_if(cases, [](const Case& c) { return !kNumbers.contains(c.id.substr(0, 4)); });
  return cases;
}

ValidateRequest request_for(const std::string& python, const std::string& module) {
  ValidateRequest request;
  request.python = python;
  request.module = std::string(SCANKIT_SOURCE_DIR "/validate/tests/modules/") + module + ".py";
  request.devices = {"cpu"};
  request.timing = false;
  request.cases = small_cases();
  return request;
}

Validation validated(const ValidateRequest& request) {
  auto result = run_validation(request);
  if (!result) {
    ADD_FAILURE() << english(result.error().message);
    return {};
  }
  return std::move(*result);
}

std::string all_reasons(const Validation& v) {
  std::string text;
  for (const CaseResult& c : v.cases)
    for (const std::string& reason : c.reasons) text += c.id + ": " + reason + "\n";
  return text;
}

// The names of the results that were measured and too far off anywhere.
std::set<std::string> failed_results(const Validation& v) {
  std::set<std::string> names;
  for (const CaseResult& c : v.cases)
    for (const TensorResult& t : c.tensors)
      if (!(used(t) <= 1)) names.insert(t.name);
  return names;
}

std::size_t count(const Validation& v, CaseState state) {
  return static_cast<std::size_t>(
      std::count_if(v.cases.begin(), v.cases.end(), [&](const CaseResult& c) { return c.state == state; }));
}

TEST(ValidateModules, TheRightOnePasses) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  const auto v = validated(request_for(python, "right"));
  EXPECT_EQ(v.verdict, Verdict::Passed) << all_reasons(v) << v.blocked;
  EXPECT_EQ(count(v, CaseState::Passed), small_cases().size());
  EXPECT_FALSE(v.torch_version.empty());
}

// The cases of the list, a model's, and one after each timing: a bar over fewer of them ran past its end.
TEST(ValidateModules, ProgressEndsAtTheNumberThatTheResultHas) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  ValidateRequest request = request_for(python, "right");
  request.cases.resize(3);
  request.timing = request.model = true;
  request.shapes = {{"cpu", "fp32", 1, 2, 8, 2, 0.05, false, false},
                    {"cpu", "fp32", 1, 2, 16, 2, 0.05, false, false}};
  Progress last;
  request.progress = [&](const Progress& now) {
    EXPECT_LE(now.done, now.total);
    last = now;
  };
  const auto v = validated(request);
  EXPECT_EQ(v.cases.size(), 6u) << all_reasons(v) << v.blocked;
  EXPECT_EQ(last.done, v.cases.size());
  EXPECT_EQ(last.total, v.cases.size());
}

struct Wrong {
  const char* module;
  std::set<std::string> results;  // exactly these results must be blamed
  const char* says;               // and this must be among the reasons
};
std::ostream& operator<<(std::ostream& out, const Wrong& wrong) { return out << wrong.module; }

class WrongModule : public testing::TestWithParam<Wrong> {};

TEST_P(WrongModule, IsCaughtAndNamed) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  const auto v = validated(request_for(python, GetParam().module));
  EXPECT_EQ(v.verdict, Verdict::Failed) << all_reasons(v) << v.blocked;
  EXPECT_EQ(failed_results(v), GetParam().results) << all_reasons(v);
  EXPECT_NE(all_reasons(v).find(GetParam().says), std::string::npos) << all_reasons(v);
}

const Wrong kWrong[] = {
    {"ignores_z", {"out_z"}, "worst element ["},
    {"drops_last_odd_step", {"out"}, "worst element ["},
    {"wrong_only_in_dA", {"dA"}, "relative error 0.001, bound 0.0001"},
    {"swaps_B_and_C",
     {"last_state", "ddelta", "dA", "dB", "dC", "du", "out", "out_z", "dz", "ddelta_bias"},
     "worst"},
    {"swaps_groups_of_dB", {"dB"}, "worst element ["},
    {"swaps_groups_of_B_and_C",
     {"last_state", "ddelta", "dA", "dB", "dC", "du", "out", "out_z", "dz", "ddelta_bias"},
     "worst element ["},
    {"takes_nan_for_zero",
     {"last_state", "ddelta", "dA", "dB", "dC", "du", "dD", "out", "out_z", "dz", "ddelta_bias"},
     "expected nan"},
    {"returns_stale_answer", {"last_state", "out", "out_z"}, "(second data in the same tensors)"},
    {"modifies_its_input", {}, "fwd changed delta, which it must not write"},
    {"writes_one_past_dz", {}, "bwd changed memory around dz, which it must not write"},
    {"writes_behind_its_result",
     {},
     "fwd wrote past the end of out (byte 1 past the end), which it must not write"},
    {"writes_before_its_result",
     {},
     "bwd wrote before the start of dA (byte 1 before it), which it must "
     "not write"},
    {"leaves_an_element_unwritten", {"out"}, "worst element ["},
    {"large_noise", {"out"}, "differs between two equal calls"},
    {"returns_input_memory", {}, "du of bwd is in the memory of u"},
    {"ignores_dz_destination", {}, "dz of bwd is not the given destination"},
    {"nan_in_fp16", {"out"}, "is nan, expected"},
};
INSTANTIATE_TEST_SUITE_P(Each, WrongModule, testing::ValuesIn(kWrong),
                         [](const auto& wrong) { return std::string(wrong.param.module); });

TEST(ValidateModules, WhatIsWrongBeyond2048StepsAloneIsCaughtAndNamed) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  auto request = request_for(python, "wrong_beyond_2048");
  request.cases = quick_cases(99);
  std::erase_if(request.cases, [](const Case& c) {
    return c.length < 2047 || c.length > 2049 || c.constant("B") || c.complex();
  });
  const auto v = validated(request);
  EXPECT_EQ(failed_results(v), (std::set<std::string>{"out", "out_z"})) << all_reasons(v);
  for (const CaseResult& c : v.cases)
    EXPECT_EQ(c.state == CaseState::Failed, c.id.find("-l2049-") != std::string::npos);
}

// As a model uses it: through autograd, inside a block.
TEST(ValidateModules, ABlockOfAModelIsJudgedToo) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  auto request = request_for(python, "right");
  request.cases.resize(1);
  request.model = true;
  const auto v = validated(request);
  EXPECT_EQ(v.verdict, Verdict::Passed) << all_reasons(v) << v.blocked;
  ASSERT_EQ(v.cases.size(), 2u);
  EXPECT_EQ(v.cases[1].id, "model-block");
  EXPECT_EQ(v.cases[1].tensors.size(), 11u);
  request.module = request_for(python, "wrong_only_in_dA").module;
  EXPECT_EQ(failed_results(validated(request)), (std::set<std::string>{"dA", "dA_log"}));
}

// After it was timed it gives the answers of the data before.
TEST(ValidateModules, WhatIsWrongOnlyOnceItWasTimedIsCaughtAndNamed) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  auto request = request_for(python, "cheats_when_timed");
  request.cases.resize(1);
  request.timing = true;
  request.shapes = {{"cpu", "fp32", 1, 4, 33, 4, 0.1, false, false}};
  const auto v = validated(request);
  EXPECT_EQ(v.verdict, Verdict::Failed) << all_reasons(v);
  EXPECT_EQ(failed_results(v), (std::set<std::string>{"out", "out_z", "last_state"})) << all_reasons(v);
  EXPECT_NE(all_reasons(v).find("timed-fp32-b1-d4-l33-n4: out"), std::string::npos) << all_reasons(v);
  request.module = request_for(python, "right").module;
  EXPECT_EQ(validated(request).verdict, Verdict::Passed);
}

// The other module's faults are told and are not this one's; both are timed, in turns.
TEST(ValidateModules, TwoModulesAreValidatedAndTimedInOneRun) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  auto request = request_for(python, "right");
  request.cases.resize(2);
  request.against = request_for(python, "slow_and_ignores_z").module;
  request.timing = true;
  request.shapes = {{"cpu", "fp32", 1, 4, 9, 4, 4, false, false}};
  const auto v = validated(request);
  EXPECT_EQ(v.verdict, Verdict::Passed) << all_reasons(v) << v.blocked;
  EXPECT_EQ(v.against_cases.size(), request.cases.size());
  EXPECT_TRUE(std::any_of(v.against_cases.begin(), v.against_cases.end(), [](const CaseResult& c) {
    return !c.reasons.empty() && c.reasons.front().starts_with("out_z: ");
  }));
  ASSERT_EQ(v.timings.size(), 2u);
  Timing forward = v.timings[0];
  forward.state.clear();  // a busy machine would make it UNKNOWN
  EXPECT_EQ(compare(forward, "against").pace, Pace::Faster) << compare(forward, "against").why;
  request.against = request_for(python, "fails_to_import").module;
  const auto broken = validated(request);
  EXPECT_EQ(broken.verdict, Verdict::Passed);
  EXPECT_NE(broken.against_problem.find("undefined symbol"), std::string::npos);
}

// Complex A, and B and C constant.
TEST(ValidateModules, WhatIsWrongInTheOtherKindsAloneIsCaughtAndNamed) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  const std::pair<const char*, std::set<std::string>> kEach[] = {{"right", {}},
                                                                 {"conjugates_dA", {"dA"}},
                                                                 {"last_state_without_B", {"last_state"}},
                                                                 {"real_part_of_dC", {"dC"}}};
  for (const auto& [module, results] : kEach) {
    auto request = request_for(python, module);
    request.cases = quick_cases(99);
    std::erase_if(request.cases, [](const Case& c) {
      return !(c.complex() || c.constant("B") || c.constant("C")) || c.length * c.dim > 1300 || c.states > 20;
    });
    ASSERT_GE(request.cases.size(), 6u);
    const auto v = validated(request);
    EXPECT_EQ(v.verdict, results.empty() ? Verdict::Passed : Verdict::Failed) << module << all_reasons(v);
    EXPECT_EQ(failed_results(v), results) << module << ": " << all_reasons(v);
  }
}

std::vector<Case> small_stateful_cases() {
  std::vector<Case> cases = stateful_cases(99, 0);
  std::erase_if(cases, [](const Case& c) { return c.length * c.dim > 1500 || c.states > 40; });
  return cases;
}

// Initial and last states, packed sequences.
TEST(ValidateModules, WhatIsWrongInTheFunctionsBesideFwdAndBwdIsCaughtAndNamed) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  const std::pair<const char*, std::set<std::string>> kEach[] = {
      {"right_stateful", {}},
      {"begins_at_zero", {"ddelta", "dA", "dC", "ddelta_bias", "dz"}},
      {"joins_sequences",
       {"out", "last_state", "du", "ddelta", "dA", "dB", "ddelta_bias", "dinitial_state"}}};
  for (const auto& [module, results] : kEach) {
    auto request = request_for(python, module);
    request.cases = small_stateful_cases();
    ASSERT_GE(request.cases.size(), 6u);
    const auto v = validated(request);
    EXPECT_EQ(v.verdict, results.empty() ? Verdict::Passed : Verdict::Failed) << module << all_reasons(v);
    EXPECT_EQ(failed_results(v), results) << module << ": " << all_reasons(v);
    EXPECT_EQ(v.cases.size(), request.cases.size());
  }
}

TEST(ValidateModules, FunctionsThatUpstreamLacksTooAreLeftOutWithANote) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  auto request = request_for(python, "right");
  request.cases.resize(2);
  for (const Case& c : small_stateful_cases()) request.cases.push_back(c);
  const auto v = validated(request);
  EXPECT_EQ(v.verdict, Verdict::Passed) << all_reasons(v);
  EXPECT_EQ(v.cases.size(), 2u);
  ASSERT_EQ(v.notes.size(), 1u);
  EXPECT_NE(v.notes[0].find("there is no fwd_stateful"), std::string::npos) << v.notes[0];
}

TEST(ValidateModules, NoiseInsideTheBoundIsReportedAndFailsWhereDeterminismIsDemanded) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  auto request = request_for(python, "tiny_noise");
  const auto tolerated = validated(request);
  EXPECT_EQ(tolerated.verdict, Verdict::Passed) << all_reasons(tolerated);
  EXPECT_TRUE(std::any_of(tolerated.cases.begin(), tolerated.cases.end(),
                          [](const auto& c) { return !c.nondeterministic.empty(); }));
  request.deterministic = true;
  EXPECT_EQ(validated(request).verdict, Verdict::Failed);
}

TEST(ValidateModules, ACrashCostsItsOwnCaseOnly) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  const auto v = validated(request_for(python, "crashes_on_groups"));
  EXPECT_EQ(v.verdict, Verdict::Failed);
  EXPECT_EQ(v.cases.size(), small_cases().size());
  const auto grouped = std::count_if(v.cases.begin(), v.cases.end(),
                                     [](const auto& c) { return c.id.find("-g1") == std::string::npos; });
  EXPECT_EQ(count(v, CaseState::Crashed), static_cast<std::size_t>(grouped));
  EXPECT_EQ(count(v, CaseState::Passed), small_cases().size() - static_cast<std::size_t>(grouped))
      << all_reasons(v);
  EXPECT_NE(all_reasons(v).find("the process crashed with SIGSEGV at "), std::string::npos);
}

TEST(ValidateModules, AHangCostsItsOwnCaseOnly) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  auto request = request_for(python, "hangs_on_length_31");
  request.each_case = std::chrono::seconds(10);
  const auto v = validated(request);
  EXPECT_EQ(v.verdict, Verdict::Failed);
  EXPECT_EQ(count(v, CaseState::Hung), 1u);
  EXPECT_EQ(count(v, CaseState::Passed), small_cases().size() - 1) << all_reasons(v);
  EXPECT_NE(all_reasons(v).find("hung and was stopped after 10 s at hangs_on_length_31.py, line "),
            std::string::npos)
      << all_reasons(v);
}

TEST(ValidateModules, AnotherArityIsNamedAsSuch) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  const auto v = validated(request_for(python, "other_arity"));
  EXPECT_EQ(v.verdict, Verdict::Failed);
  EXPECT_EQ(v.cases.at(0).error_kind, "arity");
}

TEST(ValidateModules, AModuleThatCannotBeImportedOrLacksAFunctionFails) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  const auto broken = validated(request_for(python, "fails_to_import"));
  EXPECT_EQ(broken.verdict, Verdict::Failed);
  EXPECT_EQ(broken.module_message, "ImportError: undefined symbol: _ZN3c105ErrorE");
  const auto lacking = validated(request_for(python, "lacks_bwd"));
  EXPECT_EQ(lacking.verdict, Verdict::Failed);
  EXPECT_EQ(lacking.module_problem, ModuleProblem::LacksFunctions);
}

TEST(ValidateModules, AModuleThatIsNotInstalledIsInconclusive) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  auto request = request_for(python, "right");
  request.module = "scankit_no_such_module";
  const auto v = validated(request);
  EXPECT_EQ(v.verdict, Verdict::Inconclusive);
  EXPECT_NE(v.blocked.find("no module named scankit_no_such_module"), std::string::npos) << v.blocked;
}

TEST(ValidateModules, AModuleForCudaAloneIsNotAFailureOnTheCpu) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  const auto v = validated(request_for(python, "cuda_only"));
  EXPECT_EQ(v.verdict, Verdict::Inconclusive);
  ASSERT_EQ(v.refused.size(), 1u);
  EXPECT_EQ(v.refused[0].first, "cpu");
}

TEST(ValidateModules, APythonThatDoesNotRunIsInconclusiveAndSaysWhy) {
  ValidateRequest request;
  request.cases = small_cases();
  const std::pair<const char*, const char*> kPythons[] = {
      {"/nonexistent/python", "cannot start /nonexistent/python"},
      {"/", "cannot start /"},
      {"/bin/true", "cannot run a one-line script"},
      {"/bin/false", "exited with status 1"},
  };
  for (const auto& [python, why] : kPythons) {
    request.python = python;
    const auto v = validated(request);
    EXPECT_EQ(v.verdict, Verdict::Inconclusive) << python;
    EXPECT_NE(v.blocked.find(why), std::string::npos) << v.blocked;
  }
}

TEST(ValidateModules, APythonWithoutTorchIsInconclusive) {
  ValidateRequest request;
  request.python = "/usr/bin/python3";
  request.cases = small_cases();
  const auto v = validated(request);
  if (!v.torch_version.empty()) GTEST_SKIP() << "the system's Python has a torch";
  EXPECT_EQ(v.verdict, Verdict::Inconclusive);
  EXPECT_EQ(v.blocked, "this Python has no torch");
}

}  // namespace
}  // namespace scankit::validate
