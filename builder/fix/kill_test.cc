// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "builder/testdata/probe_environment.h"

// Transactions that are killed at every system call by which they change a file system.
namespace scankit::fix {
namespace {

struct Killing {
  const char* verb;
  const char* call;
};

std::vector<Killing> killings() {
  std::vector<Killing> all;
  for (const char* call : {"rename", "renameat2", "linkat", "unlink", "unlinkat", "mkdir", "fsync", "write"})
    all.push_back({"fix", call});
  for (const char* call :
       {"rename", "renameat2", "linkat", "unlink", "unlinkat", "rmdir", "mkdir", "fsync", "syncfs", "write"})
    all.push_back({"install", call});
  return all;
}

class Killed : public testing::TestWithParam<Killing> {};

TEST_P(Killed, LeavesTheOldStateOrTheNew) {
  if (!strace_works()) GTEST_SKIP() << "strace is not here, or may not trace";
  const auto [verb, call] = GetParam();
  const bool is_fix = std::string(verb) == "fix";
  int killed = 0;
  for (const bool older : {false, true}) {
    if (older && !is_fix) continue;
    const Tree& after = is_fix ? kFixed : kInstalled;
    killed += kill_everywhere(call, "", verb, older, after);
    killed += kill_everywhere(call, verb, "restore", older, after);
  }
  EXPECT_GT(killed, 0) << "no such call was made: the list of calls is out of date";
}

INSTANTIATE_TEST_SUITE_P(AtEvery, Killed, testing::ValuesIn(killings()), [](const auto& killing) {
  return std::string(killing.param.verb) + "_" + killing.param.call;
});

}  // namespace
}  // namespace scankit::fix
