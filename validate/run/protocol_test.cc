// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "validate/run/run.h"

namespace scankit::validate {
namespace {

TEST(Protocol, ReadsACaseWithNumbersThatJsonCannotHold) {
  Validation v;
  ChildStory story;
  take_line(R"({"type":"start","id":"q1","device":"cpu"})", v, story);
  EXPECT_EQ(story.started, "q1");
  take_line(
      R"({"type":"case","id":"q1","device":"cpu","seconds":0.5,"tensors":[{"name":"out","dtype":"float32",
    "data":1,"error":"inf","explained":0,"bound":1e-4,"worst":{"index":[0,1],"value":"nan","expected":1,"bound":1e-4,
    "ratio":"inf"}}],"contract":[],"modified":["u"],"nondeterministic":{"dB":1e-9}})",
      v, story);
  ASSERT_EQ(v.cases.size(), 1u) << (v.notes.empty() ? "" : v.notes[0]);
  EXPECT_TRUE(story.started.empty());
  EXPECT_TRUE(std::isinf(v.cases[0].tensors[0].error));
  EXPECT_TRUE(std::isnan(v.cases[0].tensors[0].worst.value));
  EXPECT_EQ(v.cases[0].modified, std::vector<std::string>{"u"});
  EXPECT_EQ(v.cases[0].nondeterministic[0].second, 1e-9);
}

TEST(Protocol, APlanEndsForADeviceThatTheModuleRefuses) {
  Validation v;
  ChildStory story;
  take_line(R"({"type":"plan","cases":{"cpu":5,"cuda:0":7}})", v, story);
  take_line(R"({"type":"case","id":"q1","device":"cpu","seconds":0.5})", v, story);
  EXPECT_EQ(story.plan, (std::map<std::string, std::size_t>{{"cpu", 5}, {"cuda:0", 7}}));
  take_line(R"({"type":"refused","device":"cpu","message":"only CUDA"})", v, story);
  EXPECT_EQ(story.plan, (std::map<std::string, std::size_t>{{"cpu", 1}, {"cuda:0", 7}}));
}

TEST(Protocol, NoiseOnTheChannelIsNotedAndDoesNoHarm) {
  Validation v;
  ChildStory story;
  take_line("hello from a library", v, story);
  take_line(R"({"type":"case","id":"q1"})", v, story);
  take_line(R"([1,2])", v, story);
  EXPECT_EQ(v.notes.size(), 3u);
  EXPECT_TRUE(v.cases.empty());
}

TEST(Protocol, AMissingModuleIsNotABrokenOne) {
  Validation v;
  ChildStory story;
  take_line(R"({"type":"module","problem":"not_found","message":"no module named m"})", v, story);
  EXPECT_EQ(v.module_problem, ModuleProblem::NotFound);
  take_line(R"({"type":"module","problem":"import_failed","message":"undefined symbol"})", v, story);
  EXPECT_EQ(v.module_problem, ModuleProblem::ImportFailed);
}

TEST(Protocol, AJobIsOneLineOfOptionsAndOneATask) {
  const auto cases = quick_cases(1);
  Job job;
  job.module = "m";
  job.tasks = {{&cases[0], "cpu"}, {&cases[1], "cuda:0"}};
  const std::string text = job_text(job);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  EXPECT_EQ(text.back(), '\n');
  EXPECT_EQ(text.find("\"alone\""), std::string::npos);
  job.alone = "/a/lock";
  EXPECT_NE(job_text(job).find("\"alone\":\"/a/lock\""), std::string::npos);
}

}  // namespace
}  // namespace scankit::validate
