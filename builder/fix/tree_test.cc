// SPDX-License-Identifier: Apache-2.0
#include "builder/fix/tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "builder/testdata/probe_environment.h"

namespace scankit::fix {
namespace {

ino_t inode(const std::string& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

TEST(AfterAnInstaller, TheOldFilesComeBackAsTheyWere) {
  Environment env(false);
  const Tree before = env.tree();
  const auto file = inode(env.site() + "/package/old.py");
  ASSERT_EQ(env.run("install").exit_code, 0);
  EXPECT_EQ(env.tree(), kInstalled);
  ASSERT_EQ(env.run("restore").exit_code, 0);
  EXPECT_EQ(env.tree(), before);
  EXPECT_EQ(inode(env.site() + "/package/old.py"), file);
  EXPECT_FALSE(std::filesystem::exists(env.site() + "/package/parts"));
  EXPECT_FALSE(std::filesystem::exists(env.base() + "/.scankit/backup/0001"));
}

TEST(AfterAnInstaller, OnlyWhatItChangedIsKept) {
  Environment env(false);
  ASSERT_EQ(env.run("install").exit_code, 0);
  const std::string files = env.base() + "/.scankit/backup/0001/tree/files/";
  EXPECT_TRUE(std::filesystem::exists(files + "package/old.py"));
  EXPECT_FALSE(std::filesystem::exists(files + "bystander.py"));
  struct stat info;
  ASSERT_EQ(::lstat((env.site() + "/bystander.py").c_str(), &info), 0);
  EXPECT_EQ(info.st_nlink, 1u);
}

TEST(AfterAnInstaller, RestoreLeavesAloneWhatTheUserInstalledSince) {
  Environment env(false);
  ASSERT_EQ(env.run("install").exit_code, 0);
  std::filesystem::create_directories(env.site() + "/package/mine");
  env.put("package/mine/own.py", "mine");
  env.put("other.py", "mine");
  ASSERT_EQ(env.run("restore").exit_code, 0);
  EXPECT_EQ(env.tree().at("package/mine/own.py"), "mine");
  EXPECT_EQ(env.tree().at("other.py"), "mine");
  EXPECT_EQ(env.tree().at("package/old.py"), "1");
}

TEST(AfterAnInstaller, RestoreRefusesWherePackagesWereChangedSince) {
  Environment env(false);
  ASSERT_EQ(env.run("install").exit_code, 0);
  env.put("package/__init__.py", "3, by the user");
  const auto refused = env.run("restore");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("was changed after the installer wrote it"), std::string::npos) << refused.err;
  EXPECT_EQ(env.tree().at("package/__init__.py"), "3, by the user");
}

// pip writes the records of a package into copies, so that each restore gives them another inode.
TEST(AfterAnInstaller, TwoRepairsOfOnePackageAreBothTakenBack) {
  Environment env(false);
  const Tree first = env.tree();
  ASSERT_EQ(env.run("install").exit_code, 0);
  const Tree second = env.tree();
  ASSERT_EQ(env.run("repeat").exit_code, 0);
  ASSERT_NE(env.tree(), second);
  ASSERT_EQ(env.run("restore").exit_code, 0);
  EXPECT_EQ(env.tree(), second);
  const auto last = env.run("restore");
  ASSERT_EQ(last.exit_code, 0) << last.err;
  EXPECT_EQ(env.tree(), first);
}

// As over a mount, or of another user's files: what cannot be linked is copied, each time.
TEST(AfterAnInstaller, TwoRepairsAreTakenBackWhereNoFileCanBeLinked) {
  if (!strace_works()) GTEST_SKIP() << "strace does not work here";
  const std::vector<std::string> unlinked = {"strace", "-f",        "-E", "ASAN_OPTIONS=detect_leaks=0",
                                             "-o",     "/dev/null", "-e", "inject=linkat:error=EPERM"};
  Environment env(false);
  std::filesystem::remove(env.site() + "/package/link.py");  // a link is never copied
  const Tree first = env.tree();
  ASSERT_EQ(env.run("install", unlinked).exit_code, 0);
  const Tree second = env.tree();
  ASSERT_EQ(env.run("repeat", unlinked).exit_code, 0);
  ASSERT_NE(env.tree(), second);
  ASSERT_EQ(env.run("restore").exit_code, 0);
  EXPECT_EQ(env.tree(), second);
  const auto last = env.run("restore");
  ASSERT_EQ(last.exit_code, 0) << last.err;
  EXPECT_EQ(env.tree(), first);
}

// Of the same size and, as archives with one date for all files make it, of the same time.
TEST(AfterAnInstaller, ARecordWithOtherBytesIsAChange) {
  Environment env(false);
  ASSERT_EQ(env.run("install").exit_code, 0);
  const std::string record = env.site() + "/package-2.dist-info/RECORD";
  struct stat info;
  ASSERT_EQ(::lstat(record.c_str(), &info), 0);
  env.put("another", "3");
  std::filesystem::rename(env.site() + "/another", record);
  const timespec times[] = {info.st_atim, info.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, record.c_str(), times, 0), 0);
  EXPECT_EQ(env.run("restore").exit_code, 1);
  EXPECT_EQ(env.tree().at("package-2.dist-info/RECORD"), "3");
}

// A second fix in the meantime, a later pip: nothing that was there when the killed one is undone gets lost.
TEST(AfterAnInstaller, WhatCameAfterAKillIsKeptAside) {
  if (!strace_works()) GTEST_SKIP() << "strace is not here, or may not trace";
  Environment env(false);
  const Tree before = env.tree();
  env.run("install", {"strace", "-E", "ASAN_OPTIONS=detect_leaks=0", "-o", "/dev/null", "-e",
                      "inject=rmdir,unlinkat:signal=KILL:when=3"});
  ASSERT_NE(env.tree(), before);
  env.put("since.py", "the user's");
  const auto recovered = env.run("recover");
  ASSERT_EQ(recovered.exit_code, 0) << recovered.err;
  EXPECT_EQ(env.tree(), before);
  EXPECT_NE(recovered.out.find("/backup/0001/tree.found"), std::string::npos) << recovered.out;
  bool kept = false;
  for (const auto& entry :
       std::filesystem::directory_iterator(env.base() + "/.scankit/backup/0001/tree.found"))
    kept = kept || (entry.is_regular_file() && read_whole_file(entry.path()).value() == "the user's");
  EXPECT_TRUE(kept);
}

TEST(AfterAnInstaller, SaysWhatWasWrittenInPlace) {
  Environment env(false);
  const std::string copy = env.base() + "/copy";
  ASSERT_TRUE(save_tree(env.site(), copy));
  env.put("bystander.py", "written into the same file");
  const auto changes = note_changes(env.site(), copy);
  ASSERT_TRUE(changes);
  EXPECT_EQ(changes->rewritten, std::vector<std::string>{"bystander.py"});
  const auto lost = restore_tree(env.site(), copy, env.base() + "/aside");
  ASSERT_TRUE(lost) << english(lost.error().message);
  EXPECT_EQ(*lost, std::vector<std::string>{"bystander.py"});
}

TEST(AfterAnInstaller, AFolderInTheFilesPlaceAndBack) {
  Environment env(false);
  const Tree before = env.tree();
  const std::string copy = env.base() + "/copy";
  ASSERT_TRUE(save_tree(env.site(), copy));
  std::filesystem::remove(env.site() + "/bystander.py");
  std::filesystem::create_directories(env.site() + "/bystander.py/__pycache__");
  env.put("bystander.py/inside", "x");
  std::filesystem::remove_all(env.site() + "/package");
  env.put("package", "a file now");
  env.put("odd name %41\n\xff", "x");
  ASSERT_TRUE(note_changes(env.site(), copy));
  ASSERT_TRUE(restore_tree(env.site(), copy, env.base() + "/aside"));
  EXPECT_EQ(env.tree(), before);
}

TEST(AfterAnInstaller, ADamagedListMovesNothing) {
  Environment env(false);
  const std::string copy = env.base() + "/copy";
  ASSERT_TRUE(save_tree(env.site(), copy));
  for (const char* line :
       {"0 1 1 1 0 ../../etc/passwd\n", "0 1 1 1 0 /etc/passwd\n", "9 1 1 1 0 a\n", "0 1\n"}) {
    std::ofstream(copy + "/before", std::ios::trunc) << line;
    EXPECT_FALSE(restore_tree(env.site(), copy, env.base() + "/aside")) << line;
  }
}

}  // namespace
}  // namespace scankit::fix
