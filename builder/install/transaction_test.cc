// SPDX-License-Identifier: Apache-2.0
#include "builder/install/transaction.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "builder/install/lock.h"
#include "doctor/base/files.h"
#include "doctor/base/process.h"

namespace scankit {
namespace {

using Tree = std::map<std::string, std::string>;

// An import folder as a user may have it: a winning stale file, and in one of the two cases an older one of
// ours.
class Environment {
 public:
  explicit Environment(bool has_older) {
    std::filesystem::create_directories(site());
    put("ours.cpython.so", "stale");
    put("bystander.py", "kept");
    if (has_older) put("ours.abi3.so", "older");
  }
  std::string base() const { return folder_.path(); }
  std::string site() const { return folder_.path() + "/site"; }
  void put(const std::string& name, const std::string& bytes) { std::ofstream(site() + "/" + name) << bytes; }
  Tree tree() const {
    Tree files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(site()))
      if (entry.is_regular_file())
        files[std::filesystem::relative(entry.path(), site())] = read_whole_file(entry.path()).value();
    return files;
  }
  // What Python would import: the version-specific suffix comes first.
  std::string imported() const {
    const Tree files = tree();
    for (const char* name : {"ours.cpython.so", "ours.abi3.so"})
      if (files.count(name) != 0) return files.at(name);
    return "nothing";
  }
  ProcessResult run(const std::string& verb, std::vector<std::string> before = {}) const {
    ProcessRequest request;
    request.argv = std::move(before);
    request.argv.insert(request.argv.end(), {SCANKIT_TRANSACTION_PROBE, verb, base()});
    auto ran = run_process(request);
    return ran ? *ran : ProcessResult{};
  }

 private:
  TemporaryDirectory folder_ = TemporaryDirectory::create("environment").value();
};

const Tree kNew = {{"bystander.py", "kept"}, {"ours.abi3.so", "new"}, {"ours.dist-info/RECORD", "record"}};

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

// SIGKILL on entry of the n-th call of each system call that changes a file system, for every n there is.
// Before the next run what Python imports is the old module or the new one; after it the whole folder is as
// before or as after.
class Killed : public testing::TestWithParam<const char*> {
 protected:
  static bool strace_works() {
    ProcessRequest request;
    request.argv = {"strace", "-o", "/dev/null", "true"};
    const auto ran = run_process(request);
    return ran && ran->ok();
  }
  // How often it was killed before it ran to its end.
  static int kill_everywhere(const std::string& verb, bool older) {
    for (int n = 1; n < 200; ++n) {
      Environment env(older);
      if (verb == "restore") {
        EXPECT_EQ(env.run("fix").exit_code, 0);
      }
      const std::string inject =
          std::string("inject=") + GetParam() + ":signal=KILL:when=" + std::to_string(n);
      // LeakSanitizer cannot run in a traced process, and says so by its exit status.
      const auto ran =
          env.run(verb, {"strace", "-E", "ASAN_OPTIONS=detect_leaks=0", "-o", "/dev/null", "-e", inject});
      const std::string now = env.imported();
      EXPECT_TRUE(now == "stale" || now == "new") << GetParam() << " " << n << ": imports " << now;
      if (ran.exit_code == 0 && ran.signal == 0) return n - 1;
      EXPECT_EQ(env.run("recover").exit_code, 0) << GetParam() << " " << n;
      const Tree after = env.tree();
      Environment fresh(older);
      EXPECT_TRUE(after == fresh.tree() || after == kNew) << GetParam() << " " << n;
      // And the way on is open: the same command now does all of it, unless it had already been done.
      if (verb == "fix" && after != kNew) {
        EXPECT_EQ(env.run("fix").exit_code, 0);
        EXPECT_EQ(env.tree(), kNew);
      }
    }
    return 200;
  }
};

TEST_P(Killed, LeavesTheOldStateOrTheNew) {
  if (!strace_works()) GTEST_SKIP() << "strace is not here, or may not trace";
  int killed = 0;
  for (const char* verb : {"fix", "restore"})
    for (const bool older : {false, true}) {
      const int times = kill_everywhere(verb, older);
      EXPECT_LT(times, 200);
      killed += times;
    }
  EXPECT_GT(killed, 0) << "no such call was made: the list of calls is out of date";
}

INSTANTIATE_TEST_SUITE_P(AtEvery, Killed,
                         testing::Values("rename", "renameat2", "linkat", "unlink", "unlinkat", "mkdir",
                                         "fsync", "write"),
                         [](const auto& call) { return std::string(call.param); });

}  // namespace
}  // namespace scankit
