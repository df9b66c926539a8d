// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/process.h"

#include <gtest/gtest.h>

namespace scankit {
namespace {

ProcessRequest shell(const std::string& script) {
  ProcessRequest request;
  request.argv = {"/bin/sh", "-c", script};
  return request;
}

TEST(Process, ReturnsStatusAndBothStreams) {
  auto result = run_process(shell("echo out; echo err >&2; exit 3"));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_code, 3);
  EXPECT_EQ(result->out, "out\n");
  EXPECT_EQ(result->err, "err\n");
}

TEST(Process, ReportsTheSignalThatEndedTheChild) {
  auto result = run_process(shell("kill -SEGV $$"));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->signal, 11);
}

TEST(Process, HandsOverTheChannelAsItComes) {
  auto request = shell("echo one >&3; echo two >&3");
  request.capture_channel = true;
  std::string seen;
  request.on_channel = [&](std::string_view piece) { seen += piece; };
  auto result = run_process(request);
  ASSERT_TRUE(result);
  EXPECT_EQ(seen, "one\ntwo\n");
  EXPECT_EQ(result->channel, seen);
}

TEST(Process, KillsTheWholeGroupAtItsTimeLimit) {
  auto request = shell("sleep 60 & sleep 60");
  request.timeout = std::chrono::milliseconds(200);
  auto result = run_process(request);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->timed_out);
  EXPECT_LT(result->duration.count(), 5000);
}

TEST(Process, DoesNotWaitForAGrandchildThatKeepsThePipe) {
  auto request = shell("sleep 60 & echo done");
  auto result = run_process(request);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->ok());
  EXPECT_EQ(result->out, "done\n");
  EXPECT_LT(result->duration.count(), 5000);
}

TEST(Process, BoundsWhatAChildPrints) {
  auto request = shell("yes | head -c 1000000");
  request.output_limit = 1000;
  auto result = run_process(request);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->truncated);
  EXPECT_EQ(result->out.size(), 1000u);
}

TEST(Process, CarriesALongInputAndTheSideChannel) {
  auto request = shell("cat; echo side >&3");
  request.standard_input = std::string(300'000, 'x');
  request.capture_channel = true;
  auto result = run_process(request);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->out.size(), 300'000u);
  EXPECT_EQ(result->channel, "side\n");
}

TEST(Process, SaysThatAProgramIsMissingOrMayNotRun) {
  ProcessRequest request;
  request.argv = {"/nonexistent/program"};
  EXPECT_EQ(run_process(request).error().code, Errc::NotFound);
  request.argv = {"/etc/passwd"};
  EXPECT_EQ(run_process(request).error().code, Errc::PermissionDenied);
}

TEST(Process, UsesTheGivenEnvironmentAndFolder) {
  auto request = shell("echo $A; pwd");
  request.environment = std::vector<std::string>{"A=b"};
  request.working_directory = "/";
  auto result = run_process(request);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->out, "b\n/\n");
}

}  // namespace
}  // namespace scankit
