// SPDX-License-Identifier: Apache-2.0
// The `.scankit` of an environment that somebody else made: what it asks for is not done.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "builder/fix/transaction.h"
#include "builder/fix/tree.h"
#include "builder/testdata/probe_environment.h"
#include "doctor/base/files.h"

namespace scankit::fix {
namespace {

class Stranger : public testing::Test {
 protected:
  Stranger() : env_(false), state_(env_.base()), victim_(*TemporaryDirectory::create("victim")) {
    EXPECT_TRUE(write_file_atomically(keys(), "precious"));
    for (const std::string& folder :
         {state_.staging("0001"), state_.backup("0001"), state_.root() + "/journal"})
      EXPECT_TRUE(make_directories(folder));
  }
  std::string keys() const { return victim_.path() + "/keys"; }
  // Past write(): as an archive brings it.
  void plant(const std::string& id, const std::string& state, const std::string& operations = "") const {
    const std::string text = R"({"schema":1,"id":")" + id + R"(","run":")" + id + R"(","state":")" + state +
                             R"(","module":"m","version":"0","note":"","steps":[],"operations":[)" +
                             operations + "]}";
    ASSERT_TRUE(write_file_atomically(state_.root() + "/journal/" + id + ".json", text));
  }
  static std::string operation(const std::string& kind, const std::string& target, const std::string& staged,
                               const std::string& backup) {
    return R"({"kind":")" + kind + R"(","target":")" + target + R"(","staged":")" + staged +
           R"(","backup":")" + backup + R"(","sha256":""})";
  }
  std::string backup(const std::string& name) const { return state_.backup("0001") + "/" + name; }
  std::string staged(const std::string& name) const { return state_.staging("0001") + "/" + name; }
  void nothing_happened(const std::string& what) const {
    EXPECT_EQ(read_whole_file(keys()).value_or("gone"), "precious") << what;
  }

  Environment env_;
  StateFolder state_;
  TemporaryDirectory victim_;
};

TEST_F(Stranger, CannotHaveAFileOutsideOverwritten) {
  ASSERT_TRUE(write_file_atomically(backup("x"), "evil"));
  for (const char* kind : {"replace", "place", "keep", "tree"}) {
    plant("0001", "applying", operation(kind, keys(), staged("x"), backup("x")));
    std::vector<std::string> lines;
    const auto recovered = recover(state_, lines);
    ASSERT_FALSE(recovered) << kind;
    EXPECT_NE(english(recovered.error().message).find("refers to " + keys()), std::string::npos)
        << english(recovered.error().message);
    plant("0001", "committed", operation(kind, keys(), staged("x"), backup("x")));
    EXPECT_FALSE(undo_last(state_)) << kind;
    nothing_happened(kind);
  }
}

TEST_F(Stranger, CannotHaveAnotherFileMovedIn) {
  plant("0001", "applying", operation("save", env_.site() + "/m.so", "", keys()));
  std::vector<std::string> lines;
  EXPECT_FALSE(recover(state_, lines));
  plant("0001", "applying", operation("place", env_.site() + "/m.so", keys(), ""));
  EXPECT_FALSE(recover(state_, lines));
  nothing_happened("moved");
}

TEST_F(Stranger, CannotPutAHiddenFileIntoAHomeFolder) {
  ASSERT_TRUE(write_file_atomically(backup("1-x"), "evil"));
  for (const char* name : {"/.bashrc", "/authorized_keys", "/.hidden.so"}) {
    plant("0001", "committed", operation("save", victim_.path() + name, "", backup("1-x")));
    EXPECT_FALSE(undo_last(state_)) << name;
  }
}

// A copy that hid the module from a folder of PYTHONPATH goes back there, once the user has agreed.
TEST_F(Stranger, WhatLiesOutsideIsNamed) {
  const std::string module = victim_.path() + "/ours.so";
  Journal journal;
  journal.id = journal.run = "0001";
  journal.operations = {{Operation::Kind::Save, module, "", backup("1-ours.so"), ""},
                        {Operation::Kind::Save, env_.site() + "/ours.so", "", backup("2-ours.so"), ""}};
  EXPECT_TRUE(check_journal(state_, journal));
  EXPECT_EQ(outside_of(state_, {journal}), std::set<std::string>{module});
  // Behind a link in the environment it lies outside as well.
  ASSERT_EQ(::symlink(victim_.path().c_str(), (env_.site() + "/linked").c_str()), 0);
  journal.operations = {
      {Operation::Kind::Replace, env_.site() + "/linked/keys", staged("x"), backup("x"), ""}};
  EXPECT_EQ(outside_of(state_, {journal}), std::set<std::string>{keys()});
}

TEST_F(Stranger, CannotHaveAFolderRemovedThroughALinkOrAnId) {
  std::vector<std::string> lines;
  ASSERT_TRUE(make_directories(victim_.path() + "/0002/deep"));
  plant("Documents", "applying");
  EXPECT_FALSE(recover(state_, lines));
  ASSERT_EQ(::unlink((state_.root() + "/journal/Documents.json").c_str()), 0);
  for (const char* name : {"/staging", "/backup", "/journal"}) {
    std::filesystem::remove_all(state_.root() + name);
    ASSERT_EQ(::symlink(victim_.path().c_str(), (state_.root() + name).c_str()), 0);
    const auto recovered = recover(state_, lines);
    ASSERT_FALSE(recovered) << name;
    EXPECT_NE(english(recovered.error().message).find("symbolic link"), std::string::npos);
    ASSERT_EQ(::unlink((state_.root() + name).c_str()), 0);
  }
  ASSERT_TRUE(make_directories(state_.root() + "/staging"));
  ASSERT_EQ(::symlink((victim_.path() + "/0002").c_str(), state_.staging("0002").c_str()), 0);
  EXPECT_FALSE(recover(state_, lines));
  EXPECT_TRUE(std::filesystem::exists(victim_.path() + "/0002/deep"));
  nothing_happened("removed");
}

TEST_F(Stranger, AJournalOfAnotherUserOrOneThatOthersMayWriteIsNotRead) {
  plant("0001", "committed");
  const std::string file = state_.root() + "/journal/0001.json";
  ASSERT_TRUE(state_.journals());
  for (const std::string& path : {file, state_.root() + "/journal", state_.root(), state_.backup("0001")}) {
    struct stat before {};
    ASSERT_EQ(::stat(path.c_str(), &before), 0);
    ASSERT_EQ(::chmod(path.c_str(), 0777), 0);
    EXPECT_EQ(state_.journals().error().code, Errc::PermissionDenied) << path;
    ASSERT_EQ(::chmod(path.c_str(), before.st_mode & 07777), 0);
    if (::geteuid() != 0) continue;
    ASSERT_EQ(::chown(path.c_str(), 12345, 12345), 0);
    EXPECT_EQ(state_.journals().error().code, Errc::PermissionDenied) << path;
    ASSERT_EQ(::chown(path.c_str(), before.st_uid, before.st_gid), 0);
  }
  EXPECT_TRUE(state_.journals());
}

// It would have been emptied and given a process number.
TEST_F(Stranger, ALockThatIsALinkIsNotFollowed) {
  const std::string lock = state_.root() + "/lock";
  ASSERT_EQ(::symlink(keys().c_str(), lock.c_str()), 0);
  EXPECT_EQ(english(Lock::take(state_.root()).error().message),
            lock + " is not a lock file created by scankit");
  ASSERT_EQ(::unlink(lock.c_str()), 0);
  ASSERT_EQ(::link(keys().c_str(), lock.c_str()), 0);
  EXPECT_FALSE(Lock::take(state_.root()));
  ASSERT_EQ(::unlink(lock.c_str()), 0);
  ASSERT_EQ(::mkfifo(lock.c_str(), 0600), 0);
  EXPECT_FALSE(Lock::take(state_.root()));
  nothing_happened("locked");
  ASSERT_EQ(::unlink(lock.c_str()), 0);
  EXPECT_TRUE(Lock::take(state_.root()));
  const std::string linked = victim_.path() + "/linked";
  ASSERT_EQ(::symlink(state_.root().c_str(), linked.c_str()), 0);
  EXPECT_FALSE(Lock::take(linked));
}

// The list of an installer's changes names a file below a
// folder that is a link by now, or is one in the copy.
TEST_F(Stranger, AListCannotLeadThroughALink) {
  const std::string root = env_.site(), copy = backup("tree-1");
  ASSERT_TRUE(save_tree(root, copy));
  ASSERT_EQ(::symlink(victim_.path().c_str(), (root + "/way").c_str()), 0);
  ASSERT_TRUE(make_directories(copy + "/files/way"));
  ASSERT_TRUE(write_file_atomically(copy + "/files/way/keys", "evil"));
  TreeList before = read_tree_list(copy + "/before").value();
  before["way/keys"] = {.kind = TreeEntry::Kind::File};
  ASSERT_TRUE(write_tree_list(copy + "/before", before));
  ASSERT_TRUE(write_tree_list(copy + "/after", {{"way/keys", {.kind = TreeEntry::Kind::Gone}}}));
  const auto restored = restore_tree(root, copy, copy + ".aside");
  ASSERT_FALSE(restored);
  EXPECT_NE(english(restored.error().message).find("its path contains a symbolic link"), std::string::npos);
  std::filesystem::remove_all(copy + "/files/way");
  ASSERT_EQ(::symlink(victim_.path().c_str(), (copy + "/files/way").c_str()), 0);
  ASSERT_TRUE(write_tree_list(copy + "/after", {}));
  drop_unchanged(copy);
  nothing_happened("through a link");
}

TEST_F(Stranger, FoldersOfOursAreOursWhateverTheUmask) {
  std::filesystem::remove_all(state_.root());
  const mode_t before = ::umask(0);
  EXPECT_TRUE(env_.run("fix").exit_code == 0);
  ::umask(before);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(state_.root()))
    if (!entry.is_symlink() && entry.path().string().find("/files/") == std::string::npos) {
      struct stat info {};
      ASSERT_EQ(::lstat(entry.path().c_str(), &info), 0);
      EXPECT_EQ(info.st_mode & (S_IWGRP | S_IWOTH), 0u) << entry.path();
    }
}

TEST(JournalId, IsDigitsAlone) {
  for (const char* good : {"0001", "99999", "123456789"}) EXPECT_TRUE(is_journal_id(good)) << good;
  for (const char* bad : {"", "1", "..", "../x", "Documents", "0001/..", "00 1", "-001", "1234567890"})
    EXPECT_FALSE(is_journal_id(bad)) << bad;
}

}  // namespace
}  // namespace scankit::fix
