// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "doctor/base/files.h"

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

TEST(Process, LooksAlongPathAsAShellDoes) {
  ProcessRequest request;
  request.argv = {"true"};
  EXPECT_TRUE(run_process(request)->ok());
  request.argv = {"no-such-program-anywhere"};
  EXPECT_EQ(run_process(request).error().code, Errc::NotFound);
}

// PR_SET_PDEATHSIG is about the thread that forked: that another one ends must not matter.
TEST(Process, AChildOutlivesTheThreadsBesideItsOwn) {
  Result<ProcessResult> longer = Error{Errc::Io, "", ""};
  std::thread two([&] { longer = run_process(shell("sleep 0.5; echo alive")); });
  std::thread one([] { EXPECT_TRUE(run_process(shell("true"))->ok()); });
  one.join();
  two.join();
  ASSERT_TRUE(longer);
  EXPECT_EQ(longer->out, "alive\n");
}

bool lives(pid_t process) {
  const auto stat = read_whole_file("/proc/" + std::to_string(process) + "/stat");
  return stat && stat->find(") Z ") == std::string::npos;
}

constexpr const char* kSaysTo = "SCANKIT_TEST_SAYS_TO";

// The next test's program: its child and grandchild tell their numbers, and stay.
TEST(Process, DISABLED_StartsWhatStays) {
  const char* out = std::getenv(kSaysTo);
  ASSERT_NE(out, nullptr);
  auto request = shell("(trap '' TERM HUP; sleep 60 & echo $!) >&3; echo $$ >&3; sleep 60; true");
  request.capture_channel = true;
  request.on_channel = [&](std::string_view piece) {
    (void)!::write(std::atoi(out), piece.data(), piece.size());
  };
  (void)run_process(request).has_value();
}

// A scankit that is killed takes along what it started, what that started, and the pipes between them.
TEST(Process, NothingOutlivesAKilledParent) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::setenv(kSaysTo, std::to_string(ends[1]).c_str(), 1);
  const pid_t parent = ::fork();
  if (parent == 0) {
    ::close(ends[0]);
    ::execl("/proc/self/exe", "test", "--gtest_also_run_disabled_tests",
            "--gtest_filter=Process.DISABLED_StartsWhatStays", nullptr);
    ::_exit(127);
  }
  ::unsetenv(kSaysTo);
  ::close(ends[1]);
  std::string said;
  while (std::ranges::count(said, '\n') < 2) {
    char buffer[64];
    const ssize_t got = ::read(ends[0], buffer, sizeof(buffer));
    ASSERT_GT(got, 0) << said;
    said.append(buffer, static_cast<std::size_t>(got));
  }
  const pid_t grandchild = std::stoi(said), child = std::stoi(said.substr(said.find('\n') + 1));
  EXPECT_TRUE(lives(child) && lives(grandchild));
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  for (int i = 0; i < 200 && (lives(child) || lives(grandchild)); ++i) ::usleep(10'000);
  EXPECT_FALSE(lives(child));
  EXPECT_FALSE(lives(grandchild));
  char rest = 0;
  EXPECT_EQ(::read(ends[0], &rest, 1), 0) << "somebody still holds what they inherited";
  ::close(ends[0]);
}

// A daemon: it left the group, and its parent has ended. Its number is the first line.
ProcessRequest with_daemon(const std::string& then) {
  auto request = shell("(setsid sleep 1000 >/dev/null 2>&1 & echo $!); " + then);
  request.end_descendants = true;
  return request;
}

TEST(Process, ADaemonThatLeftTheGroupEndsWithTheChild) {
  const auto ended = run_process(with_daemon("exit 3"));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->exit_code, 3);
  ASSERT_GT(std::atoi(ended->out.c_str()), 1) << ended->out;
  EXPECT_FALSE(lives(std::atoi(ended->out.c_str())));
  const auto killed = run_process(with_daemon("kill -SEGV $$"));
  ASSERT_TRUE(killed);
  EXPECT_EQ(killed->signal, SIGSEGV);
  EXPECT_FALSE(lives(std::atoi(killed->out.c_str())));
  auto request = with_daemon("exec sleep 1000");
  request.timeout = std::chrono::milliseconds(300);
  const auto late = run_process(request);
  ASSERT_TRUE(late);
  EXPECT_TRUE(late->timed_out);
  EXPECT_LT(late->duration, std::chrono::seconds(3));
  EXPECT_FALSE(lives(std::atoi(late->out.c_str())));
  request.argv = {"/none/such"};
  EXPECT_EQ(run_process(request).error().code, Errc::NotFound);
}

TEST(Process, ADaemonThatLeftTheGroupEndsWhereWeAreKilled) {
  const auto folder = TemporaryDirectory::create("daemon");
  const std::string file = folder->path() + "/number";
  const pid_t parent = ::fork();
  if (parent == 0) {
    auto request = with_daemon("exec sleep 1000");
    request.argv[2] = "exec >" + file + "; " + request.argv[2];
    (void)run_process(request);
    ::_exit(0);
  }
  std::string number;
  for (int i = 0; i < 500 && number.find('\n') == std::string::npos; ++i) {
    ::usleep(10'000);
    number = read_whole_file(file).value_or("");
  }
  const pid_t daemon = std::atoi(number.c_str());
  ASSERT_GT(daemon, 1);
  EXPECT_TRUE(lives(daemon));
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  for (int i = 0; i < 300 && lives(daemon); ++i) ::usleep(10'000);
  EXPECT_FALSE(lives(daemon));
}

// Some daemons start what they start so.
TEST(Process, IsWaitedForWhereSigchldWasIgnored) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGCHLD, SIG_IGN);
    ::alarm(20);
    ::execl("/proc/self/exe", "test", "--gtest_filter=Process.UsesTheGivenEnvironmentAndFolder", nullptr);
    ::_exit(127);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Process, UsesTheGivenEnvironmentAndFolder) {
  auto request = shell("echo $A; pwd");
  request.environment = std::vector<std::string>{"A=b"};
  request.working_directory = "/";
  auto result = run_process(request);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->out, "b\n/\n");
}

TEST(Process, TellsWhichFileThisProgramIs) {
  const auto path = own_program();
  ASSERT_TRUE(path);
  EXPECT_TRUE(path->starts_with('/'));
  EXPECT_TRUE(std::filesystem::equivalent(*path, "/proc/self/exe"));
}

}  // namespace
}  // namespace scankit
