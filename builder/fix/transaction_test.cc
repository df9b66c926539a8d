// SPDX-License-Identifier: Apache-2.0
#include "builder/fix/transaction.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "builder/fix/tree.h"
#include "builder/testdata/probe_environment.h"

namespace scankit::fix {
namespace {

TEST(Transaction, FixesAndRestores) {
  for (const bool older : {false, true}) {
    Environment env(older);
    const Tree before = env.tree();
    ASSERT_EQ(env.run("fix").exit_code, 0);
    EXPECT_EQ(env.tree(), kFixed);
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
  ASSERT_TRUE(undone) << english(undone.error().message);
  EXPECT_EQ(env.tree(), before);
}

// While it lives, no file of this process can grow: each write fails with EFBIG, for root as well.
class NoFileCanGrow {
 public:
  NoFileCanGrow() {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none{0, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &none);
  }
  ~NoFileCanGrow() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

// The last fsync() of a commit may fail although the journal already says Committed.
TEST(Transaction, StaysRestorableWhenACommitFailsBehindItsEnd) {
  Environment env(true);
  const Tree before = env.tree();
  const StateFolder state(env.base());
  Journal journal;
  journal.id = "0001";
  for (const std::string& folder : {state.staging("0001"), state.backup("0001")})
    std::filesystem::create_directories(folder);
  std::ofstream(state.staging("0001") + "/new") << "newer";
  const std::string target = env.site() + "/ours.abi3.so";
  Transaction transaction(state, journal);
  ASSERT_TRUE(transaction.apply({{Operation::Kind::Replace, target, state.staging("0001") + "/new",
                                  state.backup("0001") + "/ours", ""}}));
  ASSERT_EQ(read_whole_file(target).value(), "newer");
  Journal committed = transaction.journal();
  committed.state = Journal::State::Committed;
  ASSERT_TRUE(state.write(committed));
  {
    const NoFileCanGrow full;
    const Error told = transaction.roll_back({Errc::Io, "the disk failed", ""});
    EXPECT_NE(english(told.message).find("undoing it failed"), std::string::npos) << told.message;
  }
  EXPECT_EQ(read_whole_file(target).value(), "newer");  // as its journal says
  const auto undone = undo_last(state);
  ASSERT_TRUE(undone) << english(undone.error().message);
  EXPECT_EQ(env.tree(), before);
}

// JSON holds no other bytes than UTF-8, and a restore from a replaced name would find neither backup nor target.
TEST(Transaction, RefusesAPathThatItsJournalCannotNameBeforeAnythingChanges) {
  Environment env(true);
  const std::string folder = env.site() + "/gr\xfc\xdf";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/old") << "older";
  const Tree before = env.tree();
  const StateFolder state(env.base());
  Journal journal;
  journal.id = "0001";
  for (const std::string& own : {state.staging("0001"), state.backup("0001")})
    std::filesystem::create_directories(own);
  Transaction transaction(state, journal);
  ASSERT_TRUE(transaction.apply({{Operation::Kind::Save, env.site() + "/ours.cpython.so", "",
                                  state.backup("0001") + "/ours.cpython.so", ""}}));
  const Operation unnamable{Operation::Kind::Save, folder + "/old", "", state.backup("0001") + "/old", ""};
  const auto refused = transaction.apply({unnamable});
  ASSERT_FALSE(refused);
  EXPECT_NE(english(refused.error().message).find("gr\\xfc\\xdf/old is not UTF-8"), std::string::npos)
      << refused.error().message;
  EXPECT_EQ(read_whole_file(folder + "/old").value(), "older");
  EXPECT_EQ(english(transaction.roll_back(refused.error()).message), english(refused.error().message));
  EXPECT_EQ(env.tree(), before);
  journal.id = "0002";
  journal.operations = {unnamable};
  EXPECT_FALSE(state.write(journal));
  EXPECT_FALSE(is_there(state.root() + "/journal/0002.json"));
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
  EXPECT_EQ(english(failed.error().message), "the import failed");
  EXPECT_EQ(env.tree(), before);
  EXPECT_EQ(state.journals().value()[0].note, "the import failed");
}

// Places `name` as a journal of that run.
void place(const StateFolder& state, const Environment& env, const std::string& name,
           const std::string& run) {
  Journal journal;
  journal.id = state.next_id().value();
  journal.run = run;
  const std::string staged = state.staging(journal.id) + "/" + name;
  ASSERT_TRUE(make_directories(path_dirname(staged)));
  ASSERT_TRUE(make_directories(state.backup(journal.id)));
  ASSERT_TRUE(write_file_atomically(staged, name));
  journal.operations = {{Operation::Kind::Place, env.site() + "/" + name, staged, "", sha256_hex(name)}};
  ASSERT_TRUE(run_transaction(state, journal, [] { return Result<void>(); }));
}

TEST(Transaction, ARunOfSeveralIsTakenBackOneByOne) {
  Environment env(false);
  const Tree before = env.tree();
  const StateFolder state(env.base());
  place(state, env, "earlier.so", "");
  const Tree earlier = env.tree();
  place(state, env, "one.so", "0002");
  place(state, env, "two.so", "0002");
  EXPECT_EQ(last_run(state).value(), "0002");
  EXPECT_TRUE(interrupted(state).value().empty());
  EXPECT_EQ(undo_last_of(state, "0002").value().id, "0003");
  EXPECT_EQ(undo_last_of(state, "0002").value().id, "0002");
  EXPECT_EQ(undo_last_of(state, "0002").error().code, Errc::NotFound);
  EXPECT_EQ(env.tree(), earlier);
  EXPECT_EQ(last_run(state).value(), "0001");  // a journal that names no run is one
  ASSERT_TRUE(undo_last(state));
  EXPECT_EQ(env.tree(), before);
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
    EXPECT_NE(refused.err.find("0001.json is not a journal"), std::string::npos) << refused.err;
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

}  // namespace
}  // namespace scankit::fix
