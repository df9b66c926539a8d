// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

#include "validate/judge/judge.h"
#include "validate/report/report.h"

namespace scankit::validate {
namespace {

Timing timing(std::vector<double> mine, std::vector<double> other) {
  Timing t{"cuda:0", "fwd", "bf16", 8, 2048, 2048, 16, "cold", {}, {}, {}};
  t.ms = {{"module", std::move(mine)}, {"against", std::move(other)}};
  return t;
}

std::vector<double> around(double middle, double spread, std::size_t count = 20) {
  std::vector<double> samples(count);
  for (std::size_t i = 0; i < count; ++i)
    samples[i] = middle + spread * (static_cast<double>(i * 7 % count) / static_cast<double>(count) - 0.5);
  return samples;
}

TEST(Speed, MedianLiesInAnIntervalOf95Percent) {
  std::vector<double> samples(20);
  std::iota(samples.begin(), samples.end(), 1.0);
  const Interval i = median_of(samples);
  EXPECT_EQ(i.middle, 10.5);
  EXPECT_EQ(i.low, 6);  // P(at most 5 of 20 below the median) = 0.0207
  EXPECT_EQ(i.high, 15);
  EXPECT_EQ(median_of({3, 1, 2}).low, 1);
  EXPECT_EQ(median_of({3, 1, 2}).high, 3);
  EXPECT_EQ(median_of({9, 8, 7, 6, 5, 4, 3, 2, 1}).middle, 5);
  EXPECT_EQ(median_of({4, 2}).middle, 3);
  EXPECT_EQ(median_of({}).middle, 0);
}

TEST(Speed, ComparisonAdmitsDoubt) {
  EXPECT_EQ(compare(timing(around(1, 0.01), around(1.3, 0.01)), "against").pace, Pace::Faster);
  EXPECT_EQ(compare(timing(around(1.3, 0.01), around(1, 0.01)), "against").pace, Pace::Slower);
  EXPECT_EQ(compare(timing(around(1, 0.01), around(1, 0.01)), "against").pace, Pace::Same);
  EXPECT_EQ(compare(timing(around(1, 0.001), around(1.03, 0.05)), "against").pace, Pace::Ambiguous);
  EXPECT_EQ(compare(timing({1, 1, 1}, {2, 2, 2}), "against").why, "only 3 rounds");
  EXPECT_EQ(compare(timing(around(1, 0, 5), around(2, 0, 5)), "against").why, "only 5 rounds");
  EXPECT_EQ(compare(timing(around(1, 0, 6), around(2, 0, 6)), "against").pace, Pace::Faster);
  Timing one = timing(around(1, 0), around(2, 0));
  EXPECT_EQ(compare(one, "plain").why, "it was not timed");
  one.ms.erase("module");
  EXPECT_EQ(compare(one, "against").why, "it was not timed");
}

TEST(Speed, ThreePercentAreTheSame) {
  for (const double other : {1 + kSame, 1 / (1 + kSame)})
    EXPECT_EQ(compare(timing(around(1, 0), around(other, 0)), "against").pace, Pace::Same) << other;
}

TEST(Speed, ADisturbedTimingIsUnknownAndSaysWhy) {
  Timing t = timing(around(1, 0.01), around(1.3, 0.01));
  t.state = {{"others", 2}};
  EXPECT_EQ(compare(t, "against").pace, Pace::Unknown);
  EXPECT_EQ(disturbance(t), "2 other processes are using this GPU");
  t.state = {{"reasons", 0x40}, {"clock", 1200}};
  EXPECT_NE(disturbance(t).find("throttled to 1200 MHz"), std::string::npos);
  t.state = {{"reasons", 0x4 | 0x1}};  // a power limit, and idling: how the GPU is
  EXPECT_EQ(disturbance(t), "");
}

TEST(Speed, AClockThatChangesIsNamed) {
  std::vector<Timing> all(2, timing({}, {}));
  all[0].state = {{"clock", 1980}};
  all[1].state = {{"clock", 1950}};
  EXPECT_EQ(clock_changes(all), "");
  all[1].state = {{"clock", 1500}};
  EXPECT_EQ(clock_changes(all), "the GPU's clock was between 1500 and 1980 MHz while it was timed");
  all[0].state = {{"clock", 1000}};
  all[1].state = {{"clock", 1050}};
  EXPECT_EQ(clock_changes(all), "");  // 5 % are usual
  all[1].state = {};                  // NVML did not tell it
  EXPECT_EQ(clock_changes(all), "");
  all[1].state = {{"clock", 2000}};
  all[1].cache = "host";  // the GPU has next to nothing to do
  EXPECT_EQ(clock_changes(all), "");
  EXPECT_EQ(clock_changes({}), "");
}

// Of 2 x 3 steps with 5 channels and 7 states each. Forward: 5 tensors of every element, B and C, and A, D and
// delta_bias in fp32.
TEST(Speed, TheLeastWorkIsCounted) {
  Timing t{"cuda:0", "fwd", "fp32", 2, 5, 3, 7, "cold", {}, {}, {}};
  const Work forward = work_of(t);
  EXPECT_EQ(forward.bytes, 4 * (5 * 30 + 2 * 6 * 7) + 4 * 5 * (7 + 2));
  EXPECT_EQ(forward.flops, 6 * 210 + 18 * 30);
  EXPECT_EQ(forward.operations, 4 * 210 + 13 * 30);
  EXPECT_EQ(forward.exponentials, 210 + 4 * 30);
  t.pass = "bwd";
  const Work backward = work_of(t);
  EXPECT_EQ(backward.bytes, 4 * (8 * 30 + 4 * 6 * 7) + 8 * 5 * (7 + 2));
  EXPECT_EQ(backward.flops, 18 * 210 + 60 * 30);
  EXPECT_EQ(backward.operations, 11 * 210 + 43 * 30);
  EXPECT_EQ(backward.exponentials, 210 + 6 * 30);
  t.dtype = "bf16";
  EXPECT_EQ(work_of(t).bytes, 2 * (8 * 30 + 4 * 6 * 7) + 8 * 5 * (7 + 2));
}

// The same pass moves 1116 bytes and takes 1230 + 9 x 330 multiply-adds on a CPU.
TEST(Speed, ACpuCopiesFasterWhatItsCachesHold) {
  const Timing t{"cpu", "fwd", "fp32", 2, 5, 3, 7, "warm", {}, {}, {}};
  const auto copy = [&](double cached_copy, double cache_bytes) {
    return roof_of(t, {1.116, 1e9, 0, cached_copy, cache_bytes}).ms;
  };
  EXPECT_DOUBLE_EQ(copy(11.16, 1116), 1e5);
  EXPECT_DOUBLE_EQ(copy(11.16, 1115), 1e6);
  EXPECT_DOUBLE_EQ(copy(0, 1116), 1e6);  // was not measured
  EXPECT_STREQ(roof_of(t, {1115, 4200, 0}).limit, "copy");
  EXPECT_STREQ(roof_of(t, {1117, 4200, 0}).limit, "fma");
  EXPECT_DOUBLE_EQ(roof_of(t, {1117, 4200, 0}).ms, 1e3);
}

// B8 D2048 L2048 bf16 with z: 335 MB, 0.161 ms of exponentials at 4.18e12 a second.
TEST(Speed, TheRoofIsThatOfTheStudy) {
  const Timing t = timing({}, {});
  EXPECT_NEAR(work_of(t).bytes, 335.54e6 + 1.05e6 + 0.15e6, 0.1e6);
  const Roof roof = roof_of(t, {4.3e12, 1.67e13, 4.18e12});
  EXPECT_STREQ(roof.limit, "exp");
  EXPECT_NEAR(roof.ms, 0.161, 0.001);
}

TEST(Speed, WhatTheHarnessAddsIsHeldAgainstCallsInARow) {
  Validation v;
  EXPECT_FALSE(harness_cost(v, "cpu").known);
  v.timings = {timing({}, {}), timing({}, {})};
  for (Timing& t : v.timings) t.ms = {{"module", {2, 2, 2, 2, 2, 2}}}, t.wall_ms = 15;
  v.timings[0].in_a_row_ms = 1.6;
  const std::string device = v.timings[0].device;
  const HarnessCost cost = harness_cost(v, device);
  EXPECT_NEAR(cost.added, 0.25, 1e-12);
  EXPECT_NEAR(cost.around, 0.25, 1e-12);
  EXPECT_FALSE(harness_cost(v, "another").known);
  for (const auto& change : std::vector<std::function<void(Timing&)>>{[](Timing& t) { t.device = "another"; },
                                                                      [](Timing& t) {
                                                                        t.ms = {{"plain", {2}}};
                                                                      },
                                                                      [](Timing& t) { t.wall_ms = 0; }}) {
    Validation with_another = v;  // that tells nothing about the harness on this device
    change(with_another.timings.emplace_back(v.timings[0]));
    EXPECT_EQ(harness_cost(with_another, device).added, cost.added);
    EXPECT_EQ(harness_cost(with_another, device).around, cost.around);
  }
  Validation cold = v;  // calls, but none in a row
  cold.timings[0].in_a_row_ms = 0;
  EXPECT_FALSE(harness_cost(cold, device).known);
  cold.timings[0].in_a_row_ms = 1;  // no call
  for (Timing& t : cold.timings) t.ms["module"].clear();
  EXPECT_FALSE(harness_cost(cold, device).known);
  v.limits[device] = {1, 1, 1};
  EXPECT_NE(json_report(v).find("\"added\": 0.25"), std::string::npos);
  EXPECT_NE(
      text_report(v, {}).find("25.0 % more time than one of many in a row; the harness itself used 25.0 %"),
      std::string::npos);
  for (Timing& t : v.timings) t.in_a_row_ms *= 2;  // faster alone: not "-37.5 % more"
  EXPECT_NE(text_report(v, {}).find("37.5 % less time than one of many in a row"), std::string::npos);
}

// It is timed before the modules and not in turns with them: none of it is theirs.
TEST(Speed, PlainPyTorchIsHeldAgainstByItsMedian) {
  Validation v;
  v.timings = {timing({2, 2, 2, 2, 2, 2}, {})};
  Timing& t = v.timings[0];
  EXPECT_EQ(times_plain(t), 0);
  t.ms["plain"] = {500, 100, 200};
  t.wall_ms = 15, t.in_a_row_ms = 2;
  EXPECT_NEAR(times_plain(t), 100, 1e-12);
  EXPECT_NEAR(harness_cost(v, t.device).around, 0.25, 1e-12);
}

TEST(Speed, TheHarnessMayAddTooMuch) {
  Validation v;
  v.timings = {timing({1.06, 1.06, 1.06, 1.06, 1.06, 1.06}, {}), timing({0.03, 0.03}, {})};
  v.timings[0].wall_ms = v.timings[1].wall_ms = 10;
  v.timings[0].in_a_row_ms = 1;
  v.timings[1].in_a_row_ms = 0.02;  // short: half as long again, and yet little
  EXPECT_NEAR(harness_cost(v, v.timings[0].device).added, 1.09 / 1.02 - 1, 1e-12);
}

class Baseline : public testing::Test {
 protected:
  Baseline() {
    run_.gpu = "NVIDIA H200";
    run_.timings = {timing(around(1, 0.02), {})};
    run_.timings[0].ms.erase("against");
    text_ = json_report(run_);
    run_.baseline = "before.json";
    run_.cases = {{}};
    run_.cases[0].state = CaseState::Passed;
  }
  Validation run_;
  std::string text_;
};

TEST_F(Baseline, TheSamePassesAndASlowerPassFails) {
  compare_with_baseline(run_, text_);
  ASSERT_EQ(run_.compared.size(), 1u);
  EXPECT_FALSE(run_.compared[0].regressed);
  EXPECT_EQ(judge(run_), Verdict::Passed);
  run_.compared.clear();
  run_.timings[0].ms["module"] = around(1.2, 0.02);
  compare_with_baseline(run_, text_);
  EXPECT_TRUE(run_.compared.at(0).regressed);
  EXPECT_EQ(judge(run_), Verdict::Failed);
  EXPECT_NE(text_report(run_, {}).find("REGRESSED"), std::string::npos);
}

TEST_F(Baseline, OfAnotherGpuIsNamedAndDecidesNothing) {
  run_.gpu = "NVIDIA L4";
  run_.timings[0].ms["module"] = around(5, 0.02);
  compare_with_baseline(run_, text_);
  EXPECT_TRUE(run_.compared.empty());
  EXPECT_EQ(run_.baseline_problem, "the baseline was taken on NVIDIA H200, and this is NVIDIA L4");
  EXPECT_EQ(judge(run_), Verdict::Inconclusive);
}

TEST_F(Baseline, ThatIsNoneIsNamed) {
  for (const char* text :
       {"", "{}", "[1]", "not JSON", R"({"timing": [{"device": 1}]})", R"({"gpu": "NVIDIA H200"})"}) {
    run_.baseline_problem.clear();
    compare_with_baseline(run_, text);
    EXPECT_FALSE(run_.baseline_problem.empty()) << text;
    EXPECT_TRUE(run_.compared.empty()) << text;
  }
}

}  // namespace
}  // namespace scankit::validate
