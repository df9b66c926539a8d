// SPDX-License-Identifier: Apache-2.0
#include "builder/install/transaction.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "builder/install/lock.h"
#include "builder/testdata/probe_environment.h"

namespace scankit {
namespace {

const Tree kNew = {{"bystander.py", "kept"},     {"lines.pth", "/some\n"},
                   {"ours.abi3.so", "new"},      {"ours.dist-info/RECORD", "record"},
                   {"package/__init__.py", "1"}, {"package/link.py", "-> __init__.py"},
                   {"package/old.py", "1"},      {"package-1.dist-info/RECORD", "1"}};

TEST(Transaction, FixesAndRestores) {
  for (const bool older : {false, true}) {
    Environment env(older);
    const Tree before = env.tree();
    ASSERT_EQ(env.run("fix").exit_code, 0);
    EXPECT_EQ(env.tree(), kNew);
    ASSERT_EQ(env.run("restore").exit_code, 0);
    EXPECT_EQ(env.tree(), before);
    const auto twice = env.run("restore");
    EXPECT_EQ(twice.exit_code, 1);
    EXPECT_NE(twice.err.find("nothing to restore"), std::string::npos);
  }
}

TEST(Transaction, PutsBackARecordThatTheSameFixReplaced) {
  Environment env(false);
  const StateFolder state(env.base());
  const std::string record = env.site() + "/ours.dist-info";
  std::filesystem::create_directories(record);
  std::ofstream(record + "/RECORD") << "older";
  const Tree before = env.tree();
  Journal journal;
  journal.id = "0001";
  for (const std::string& folder : {state.staging("0001") + "/ours.dist-info", state.backup("0001")})
    std::filesystem::create_directories(folder);
  journal.operations = {{Operation::Kind::Save, record, "", state.backup("0001") + "/ours.dist-info", ""},
                        {Operation::Kind::Place, record, state.staging("0001") + "/ours.dist-info", "", ""}};
  ASSERT_TRUE(run_transaction(state, journal, [] { return Result<void>(); }));
  EXPECT_NE(env.tree(), before);
  const auto undone = undo_last(state);
  ASSERT_TRUE(undone) << undone.error().message;
  EXPECT_EQ(env.tree(), before);
}

TEST(Transaction, SaysWhenThereIsNothingToRestore) {
  Environment env(false);
  EXPECT_NE(env.run("restore").err.find("has changed nothing"), std::string::npos);
}

TEST(Transaction, RefusesToRestoreOverWhatTheUserMadeSince) {
  Environment env(false);
  ASSERT_EQ(env.run("fix").exit_code, 0);
  env.put("ours.cpython.so", "the user's own build");
  const auto refused = env.run("restore");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("exists again"), std::string::npos);
  EXPECT_EQ(env.tree().at("ours.cpython.so"), "the user's own build");
}

TEST(Transaction, RestoresWhatPipHasUninstalled) {
  Environment env(false);
  const Tree before = env.tree();
  ASSERT_EQ(env.run("fix").exit_code, 0);
  std::filesystem::remove(env.site() + "/ours.abi3.so");
  std::filesystem::remove_all(env.site() + "/ours.dist-info");
  ASSERT_EQ(env.run("restore").exit_code, 0);
  EXPECT_EQ(env.tree(), before);
}

TEST(Transaction, NeverWritesThroughAHardLink) {
  Environment env(true);
  const std::string cache = env.base() + "/uv-cache.so", target = env.site() + "/ours.abi3.so";
  std::filesystem::create_hard_link(target, cache);
  ASSERT_EQ(env.run("fix").exit_code, 0);
  EXPECT_EQ(read_whole_file(cache).value(), "older");
  ASSERT_EQ(env.run("restore").exit_code, 0);
  EXPECT_EQ(read_whole_file(cache).value(), "older");
  EXPECT_TRUE(std::filesystem::equivalent(cache, target));
}

TEST(Transaction, UndoesEverythingWhenVerificationFails) {
  Environment env(false);
  const Tree before = env.tree();
  const StateFolder state(env.base());
  Journal journal;
  journal.id = "0001";
  ASSERT_TRUE(make_directories(state.backup("0001")));
  journal.operations = {{Operation::Kind::Save, env.site() + "/ours.cpython.so", "",
                         state.backup("0001") + "/ours.cpython.so", ""}};
  const auto failed = run_transaction(state, journal, [] {
    return Result<void>(Error{Errc::ToolFailed, "the import failed", ""});
  });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "the import failed");
  EXPECT_EQ(env.tree(), before);
  EXPECT_EQ(state.journals().value()[0].note, "the import failed");
}

TEST(Transaction, AForeignJournalStopsEverything) {
  Environment env(false);
  for (const char* text : {"", "{}", "not json",
                           R"({"schema":1,"id":"0001","state":"applying","module":"m","version":"1","note":"",
                               "operations":[{"kind":"save","target":"../../etc/passwd","staged":"",
                                              "backup":"/tmp/x","sha256":""}]})"}) {
    std::filesystem::create_directories(env.base() + "/.scankit/journal");
    std::ofstream(env.base() + "/.scankit/journal/0001.json") << text;
    const auto refused = env.run("fix");
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_NE(refused.err.find("0001.json is no journal"), std::string::npos) << refused.err;
  }
}

TEST(Lock, KeepsASecondFixerOut) {
  Environment env(false);
  const auto held = Lock::take(env.base() + "/.scankit");
  ASSERT_TRUE(held);
  const auto refused = env.run("fix");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("another scankit"), std::string::npos);
}

class Killed : public testing::TestWithParam<const char*> {};

TEST_P(Killed, LeavesTheOldStateOrTheNew) {
  if (!strace_works()) GTEST_SKIP() << "strace is not here, or may not trace";
  int killed = 0;
  for (const bool older : {false, true}) {
    killed += kill_everywhere(GetParam(), "", "fix", older, kNew);
    killed += kill_everywhere(GetParam(), "fix", "restore", older, kNew);
  }
  EXPECT_GT(killed, 0) << "no such call was made: the list of calls is out of date";
}

INSTANTIATE_TEST_SUITE_P(AtEvery, Killed,
                         testing::Values("rename", "renameat2", "linkat", "unlink", "unlinkat", "mkdir",
                                         "fsync", "write"),
                         [](const auto& call) { return std::string(call.param); });

}  // namespace
}  // namespace scankit
