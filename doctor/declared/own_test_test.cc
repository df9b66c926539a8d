// SPDX-License-Identifier: Apache-2.0
#include "doctor/declared/own_test.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "doctor/base/files.h"
#include "doctor/base/say.h"

namespace scankit::declared {
namespace {

// Runs of a real interpreter: a script that stands for python says how it was called.
class OwnTest : public ::testing::Test {
 protected:
  OwnTest() : folder_(*TemporaryDirectory::create("scankit-own-test")) {}

  // A shell script in the place of python: `body` runs with the arguments that python would get.
  TestRun run(const std::string& body, const std::string& file = "smoke.py", const std::string& text = "",
              std::chrono::seconds limit = std::chrono::seconds(20)) {
    const std::string python = folder_.path() + "/python";
    EXPECT_TRUE(write_file_atomically(python, "#!/bin/sh\n" + body + "\n"));
    EXPECT_TRUE(write_file_atomically(folder_.path() + "/" + file, text));
    (void)::chmod(python.c_str(), 0755);
    seen_.clear();
    return run_own_test(python, folder_.path() + "/" + file, limit,
                        [&](std::string_view piece) { seen_ += piece; });
  }
  TemporaryDirectory folder_;
  std::string seen_;
};

TEST_F(OwnTest, PlainScript) {
  const TestRun passed = run("pwd; echo \"$@\"; echo to stderr >&2");
  EXPECT_EQ(passed.state, TestState::Passed) << english(passed.why);
  EXPECT_EQ(passed.by, "python");
  EXPECT_NE(seen_.find(folder_.path() + "\n"), std::string::npos) << seen_;
  EXPECT_NE(seen_.find("-B -u " + folder_.path() + "/smoke.py\n"), std::string::npos) << seen_;
  EXPECT_NE(seen_.find("to stderr\n"), std::string::npos) << seen_;
  EXPECT_EQ(passed.lines.size(), 3u);
  const TestRun failed = run("echo Traceback; echo 'AssertionError: \033[31mno'; exit 1");
  EXPECT_EQ(failed.state, TestState::Failed);
  EXPECT_EQ(failed.why, Message("AssertionError: \\x1b[31mno"));
  EXPECT_EQ(run("kill -SEGV $$").state, TestState::Crashed);
  EXPECT_EQ(run("sleep 30", "smoke.py", "", std::chrono::seconds(1)).state, TestState::Hung);
}

// Also what has left its process group.
TEST_F(OwnTest, EndsAtOnceWhereItIsStopped) {
  const std::string python = folder_.path() + "/python", file = folder_.path() + "/smoke.py";
  ASSERT_TRUE(
      write_file_atomically(python, "#!/bin/sh\n(setsid sh -c 'echo $$; exec sleep 60' &)\nsleep 60\n"));
  ASSERT_TRUE(write_file_atomically(file, ""));
  (void)::chmod(python.c_str(), 0755);
  std::string daemon;
  const TestRun run = run_own_test(
      python, file, std::chrono::seconds(50), [&](std::string_view piece) { daemon += piece; },
      [&] { return daemon.ends_with("\n"); });
  EXPECT_EQ(run.state, TestState::NotRun);
  EXPECT_EQ(english(run.why), "it was stopped before its end");
  EXPECT_LT(run.seconds, 20);
  bool lives = true;
  for (int i = 0; i < 500 && lives; ++i, ::usleep(10'000)) lives = ::kill(std::stoi(daemon), 0) == 0;
  EXPECT_FALSE(lives) << daemon;
}

TEST_F(OwnTest, KeepsTheEndOfEndlessOutput) {
  const TestRun done = run("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; exit 7");
  EXPECT_EQ(done.state, TestState::Failed);
  ASSERT_EQ(done.lines.size(), 20u);
  EXPECT_EQ(done.lines.back(), "line 19999");
  EXPECT_EQ(done.lines.front(), "line 19980");
}

TEST_F(OwnTest, KeepsTheLinesOfBothStreamsWhole) {
  const TestRun mixed =
      run("printf 'one '; sleep 0.1; echo other >&2; sleep 0.1; echo line; printf end; exit 1");
  EXPECT_EQ(mixed.lines, (std::vector<std::string>{"other", "one line", "end"}));
}

TEST_F(OwnTest, PytestFile) {
  const std::string text = "def test_one():\n    assert True\n";
  const TestRun by_pytest =
      run("case \"$*\" in *'import pytest') exit 0;; esac; echo \"$@\"; exit 1", "test_one.py", text);
  EXPECT_EQ(by_pytest.state, TestState::Failed);
  EXPECT_EQ(by_pytest.by, "pytest");
  EXPECT_NE(seen_.find("\n -q -p no:cacheprovider " + folder_.path() + "/test_one.py"), std::string::npos)
      << seen_;
  // No test was found: not a pass.
  EXPECT_EQ(run("case \"$*\" in *'import pytest') exit 0;; esac; exit 5", "test_one.py", text).state,
            TestState::NotRun);
  // Without pytest its functions would not be called, and `python FILE` would pass whatever they say.
  const TestRun without =
      run("case \"$*\" in *'import pytest') exit 1;; esac; echo called", "test_one.py", text);
  EXPECT_EQ(without.state, TestState::NotRun);
  EXPECT_EQ(seen_, "");
  EXPECT_NE(english(without.why).find("cannot import pytest"), std::string::npos) << english(without.why);
  const TestRun itself = run("case \"$*\" in *'import pytest') exit 1;; esac; echo called", "test_one.py",
                             text + "if __name__ == \"__main__\":\n    test_one()\n");
  EXPECT_EQ(itself.state, TestState::Passed);
  EXPECT_EQ(itself.by, "python");
  // A comment about it calls nothing.
  EXPECT_EQ(run("case \"$*\" in *'import pytest') exit 1;; esac; echo called", "test_one.py",
                "# no __main__\n" + text)
                .state,
            TestState::NotRun);
  EXPECT_TRUE(is_pytest_file("smoke.py", "import a\nclass TestA:\n"));
  EXPECT_FALSE(is_pytest_file("smoke.py", "import a\n    def test_inner(): pass\n"));
}

// By a real pytest: what it calls a success without having run a test is none.
TEST_F(OwnTest, WhatRealPytestSkips) {
  const std::string file = folder_.path() + "/test_real.py";
  if (run_own_test("/usr/bin/python3", file, std::chrono::seconds(60), {}).state != TestState::NotRun ||
      !write_file_atomically(file, "def test_a(): pass\n"))
    FAIL() << "a missing file is no test";
  const TestRun plain = run_own_test("/usr/bin/python3", file, std::chrono::seconds(60), {});
  if (english(plain.why).find("cannot import pytest") != std::string::npos)
    GTEST_SKIP() << english(plain.why);
  EXPECT_EQ(plain.state, TestState::Passed) << english(plain.why);
  const auto state = [&](const std::string& text) {
    EXPECT_TRUE(write_file_atomically(file, "import pytest\n" + text));
    return run_own_test("/usr/bin/python3", file, std::chrono::seconds(60), {}).state;
  };
  const std::string skipped = "@pytest.mark.skip(reason='no GPU')\ndef test_a(): pass\n";
  EXPECT_EQ(state(skipped), TestState::NotRun);
  EXPECT_EQ(state("def test_a(): pytest.skip('no GPU')\n"), TestState::NotRun);
  EXPECT_EQ(state(skipped + "def test_b(): pass\n"), TestState::Passed);
  EXPECT_EQ(state("@pytest.mark.xfail\ndef test_a(): assert False\n"), TestState::Passed);
  EXPECT_EQ(state(skipped + "def test_b(): assert False\n"), TestState::Failed);
  EXPECT_EQ(state("import no_such_module_of_this_test\n"), TestState::Failed);
}

TEST_F(OwnTest, FileThatIsNone) {
  const auto host = make_real_host();
  for (const std::string& file : {folder_.path(), folder_.path() + "/none.py", std::string("/bin/sh")}) {
    const auto found = own_test_file(*host, "--test", file);
    ASSERT_FALSE(found) << file;
    EXPECT_EQ(found.error().code, Errc::InvalidArgument);
    EXPECT_FALSE(found.error().hint.empty());
  }
}

}  // namespace
}  // namespace scankit::declared
