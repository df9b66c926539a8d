// SPDX-License-Identifier: Apache-2.0
#include "validate/judge/judge.h"

#include <gtest/gtest.h>

#include <cmath>

namespace scankit::validate {
namespace {

CaseResult case_with(double error, double ratio) {
  CaseResult result;
  result.id = "q000";
  result.device = "cpu";
  result.tensors.push_back({"dA", "float32", 1, error, 3e-8, 1e-4, {{2, 3}, 0.5, 0.25, 1e-5, ratio}});
  return result;
}

CaseState state_of(CaseResult result, bool deterministic = false) {
  judge_case(result, deterministic);
  return result.state;
}

TEST(Judge, PassesInsideBothBounds) { EXPECT_EQ(state_of(case_with(9e-5, 0.9)), CaseState::Passed); }
TEST(Judge, PassesAtTheBoundItself) { EXPECT_EQ(state_of(case_with(1e-4, 1)), CaseState::Passed); }
TEST(Judge, FailsInNorm) { EXPECT_EQ(state_of(case_with(2e-4, 0.9)), CaseState::Failed); }
TEST(Judge, FailsAtOneElementThoughTheNormIsFine) {
  EXPECT_EQ(state_of(case_with(1e-6, 1.1)), CaseState::Failed);
}
TEST(Judge, FailsOnNan) {
  EXPECT_EQ(state_of(case_with(NAN, 0.1)), CaseState::Failed);
  EXPECT_EQ(state_of(case_with(1e-6, NAN)), CaseState::Failed);
}

TEST(Judge, NamesTheWorstElementWithValueExpectedAndBound) {
  CaseResult result = case_with(0.1, 25000);
  judge_case(result, false);
  ASSERT_EQ(result.reasons.size(), 1u);
  EXPECT_EQ(result.reasons[0],
            "dA: relative error 0.1, bound 0.0001; worst element [2,3] is 0.5, expected 0.25 +- 1e-05");
}

TEST(Judge, SaysThatTheFirstDataSetWasRight) {
  CaseResult result = case_with(0, 25000);
  result.tensors[0].data = 2;
  result.tensors[0].worst.inputs = {{"u", 1}, {"A", -0.03125}};
  judge_case(result, false);
  ASSERT_EQ(result.reasons.size(), 1u);
  EXPECT_EQ(
      result.reasons[0],
      "dA (second data in the same tensors): worst element [2,3] is 0.5, expected 0.25 +- 1e-05 (inputs "
      "there: u 1, A -0.0312)");
}

// A child's answer without a usable bound shows nothing.
TEST(Judge, FailsWithoutABound) {
  for (const double bound : {0.0, -1.0}) {
    CaseResult result = case_with(0, 0);
    result.tensors[0].bound = bound;
    EXPECT_EQ(state_of(result), CaseState::Failed) << bound;
  }
}

TEST(Judge, RoundsToTheLeastValueOfBfloat16) {
  EXPECT_EQ(rounded(kBF16, 0x1p-133), 0x1p-133);
  EXPECT_EQ(rounded(kBF16, 0x1p-134), 0);
  EXPECT_EQ(rounded(kBF16, 0x3p-134), 0x1p-132);
  EXPECT_TRUE(std::signbit(rounded(kBF16, -0.0)));
  EXPECT_EQ(rounded(kF16, -INFINITY), -INFINITY);
  EXPECT_TRUE(std::isnan(rounded(kF16, NAN)));
}

TEST(Judge, AChangedInputAndABrokenContractFail) {
  CaseResult result = case_with(0, 0);
  result.modified = {"fwd changed u"};
  EXPECT_EQ(state_of(result), CaseState::Failed);
  result.modified.clear();
  result.contract = {"out of fwd has strides [1]"};
  EXPECT_EQ(state_of(result), CaseState::Failed);
}

TEST(Judge, NondeterminismInsideTheBoundFailsOnlyWhereItWasDemanded) {
  CaseResult result = case_with(0, 0);
  result.nondeterministic = {{"dA", 1e-6}};
  EXPECT_EQ(state_of(result), CaseState::Passed);
  EXPECT_EQ(state_of(result, true), CaseState::Failed);
  result.nondeterministic = {{"dA", 1e-3}};
  EXPECT_EQ(state_of(result), CaseState::Failed);
}

TEST(Judge, NothingRunIsInconclusiveAndNeverPassed) {
  Validation none;
  EXPECT_EQ(judge(none), Verdict::Inconclusive);
  none.module_problem = ModuleProblem::NotFound;
  EXPECT_EQ(judge(none), Verdict::Inconclusive);
  none.module_problem = ModuleProblem::ImportFailed;
  EXPECT_EQ(judge(none), Verdict::Failed);
}

TEST(Judge, OneCrashFailsAndOneCaseLeftOutIsInconclusive) {
  Validation v;
  v.cases.resize(2);
  v.cases[0].state = v.cases[1].state = CaseState::Passed;
  EXPECT_EQ(judge(v), Verdict::Passed);
  v.cases[1].state = CaseState::NotRun;
  EXPECT_EQ(judge(v), Verdict::Inconclusive);
  v.cases[1].state = CaseState::Crashed;
  EXPECT_EQ(judge(v), Verdict::Failed);
}

}  // namespace
}  // namespace scankit::validate
