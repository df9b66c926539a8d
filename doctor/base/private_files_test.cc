// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "doctor/base/files.h"

namespace scankit {
namespace {

constexpr uid_t kStranger = 4711;

unsigned mode_of(const std::string& path) {
  struct ::stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

class PrivateFiles : public testing::Test {
 protected:
  PrivateFiles() : folder_(*TemporaryDirectory::create("private")) {
    EXPECT_TRUE(write_file_atomically(file_, "bytes"));
  }
  TemporaryDirectory folder_;
  std::string file_ = folder_.path() + "/file";
};

TEST_F(PrivateFiles, AreReadWhereNobodyElseCanWrite) {
  EXPECT_EQ(read_private_file(file_, 100).value_or("?"), "bytes");
  EXPECT_EQ(read_private_file(file_, 4).error().code, Errc::Unsupported);
  EXPECT_TRUE(check_private_folder(folder_.path()));
  EXPECT_EQ(read_private_file(folder_.path() + "/none", 100).error().code, Errc::NotFound);
}

TEST_F(PrivateFiles, AreRefusedWhereTheGroupOrOthersCanWrite) {
  for (const mode_t mode : {0664, 0646}) {
    ASSERT_EQ(::chmod(file_.c_str(), mode), 0);
    const auto read = read_private_file(file_, 100);
    ASSERT_FALSE(read);
    EXPECT_NE(english(read.error().message).find("can write to"), std::string::npos)
        << english(read.error().message);
    EXPECT_NE(english(read.error().hint).find("chmod go-w"), std::string::npos);
    EXPECT_FALSE(check_private_entry(file_));
  }
  ASSERT_EQ(::chmod(folder_.path().c_str(), 01777), 0);  // the sticky bit keeps nobody from planting
  EXPECT_FALSE(check_private_folder(folder_.path()));
}

TEST_F(PrivateFiles, AreRefusedWhereTheyBelongToAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_EQ(::chown(file_.c_str(), kStranger, kStranger), 0);
  const auto read = read_private_file(file_, 100);
  ASSERT_FALSE(read);
  EXPECT_NE(english(read.error().message).find("4711"), std::string::npos) << english(read.error().message);
  ASSERT_EQ(::chown(folder_.path().c_str(), kStranger, kStranger), 0);
  EXPECT_FALSE(check_private_folder(folder_.path()));
}

TEST_F(PrivateFiles, AreNeitherLinksNorPipes) {
  const std::string link = folder_.path() + "/link", pipe = folder_.path() + "/pipe";
  ASSERT_EQ(::symlink(file_.c_str(), link.c_str()), 0);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(read_private_file(link, 100).error().code, Errc::PermissionDenied);
  EXPECT_FALSE(check_private_entry(link));
  EXPECT_EQ(read_private_file(pipe, 100).error().code, Errc::Unsupported);  // at once
}

TEST_F(PrivateFiles, FoldersAreMadeForTheirOwnerAlone) {
  const std::string made = folder_.path() + "/a/b";
  const mode_t before = ::umask(0);
  const auto done = make_private_folders(made);
  ::umask(before);
  ASSERT_TRUE(done);
  EXPECT_EQ(mode_of(made), 0700u);
  EXPECT_EQ(mode_of(folder_.path() + "/a"), 0700u);
  EXPECT_FALSE(make_private_folders(file_ + "/below"));
}

TEST_F(PrivateFiles, ATreeOfAnInstallerIsClosed) {
  const std::string below = folder_.path() + "/tree/lib";
  ASSERT_TRUE(make_directories(below));
  ASSERT_TRUE(write_file_atomically(below + "/x.so", "x", 0775));
  ASSERT_EQ(::chmod(below.c_str(), 0777), 0);
  ASSERT_EQ(::symlink("/etc/passwd", (below + "/link").c_str()), 0);
  const unsigned outside = mode_of("/etc/passwd");
  ASSERT_TRUE(make_tree_private(folder_.path() + "/tree"));
  EXPECT_EQ(mode_of(below), 0755u);
  EXPECT_EQ(mode_of(below + "/x.so"), 0755u);
  EXPECT_EQ(mode_of("/etc/passwd"), outside);
}

}  // namespace

namespace {

namespace fs = std::filesystem;

// A folder in which work folders are made, as in /tmp.
class Base : public testing::Test {
 protected:
  void SetUp() override { ::setenv("TMPDIR", folder_.path().c_str(), 1); }
  void TearDown() override { ::unsetenv("TMPDIR"); }
  std::string base() const { return folder_.path(); }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(base()), fs::directory_iterator()));
  }
  // The work folder of a process that was killed while it had one.
  std::string leave_dead() const {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      const auto made = TemporaryDirectory::create("scankit-dead");
      std::ofstream(made->path() + "/file") << "left";
      (void)!::write(ends[1], made->path().data(), made->path().size());
      for (;;) ::pause();
    }
    std::string path(4096, '\0');
    const ssize_t got = ::read(ends[0], path.data(), path.size());
    path.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(ends[0]);
    ::close(ends[1]);
    EXPECT_TRUE(fs::exists(path + "/file"));
    return path;
  }

 private:
  TemporaryDirectory folder_ = TemporaryDirectory::create("scankit-base").value();
};

TEST_F(Base, IsGoneAfterwardsWithItsLock) {
  {
    const auto made = TemporaryDirectory::create("scankit-test");
    ASSERT_TRUE(made);
    EXPECT_EQ(entries(), 2u);
  }
  EXPECT_EQ(entries(), 0u);
}

TEST_F(Base, WhatAKilledOneLeftIsRemoved) {
  leave_dead();
  remove_dead_folders(base());
  EXPECT_EQ(entries(), 0u);
}

TEST_F(Base, WhatIsInUseStays) {
  const auto made = TemporaryDirectory::create("scankit-test");
  remove_dead_folders(base());
  EXPECT_TRUE(fs::exists(made->path()));
}

TEST_F(Base, WhatIsNotSurelyOursStays) {
  const std::string dead = leave_dead();
  const auto stays = [&](const std::string& folder) {
    remove_dead_folders(base());
    return fs::exists(folder);
  };
  const std::string lock = dead + ".lock", words = read_whole_file(lock).value();
  // Somebody else's folder under that name.
  fs::rename(dead, base() + "/aside");
  fs::create_directory(dead);
  EXPECT_TRUE(stays(dead));
  fs::remove(dead);
  fs::create_directory_symlink(base() + "/aside", dead);
  EXPECT_TRUE(stays(base() + "/aside/file"));
  fs::remove(dead);
  fs::rename(base() + "/aside", dead);
  // A lock file that says nothing, another boot, another name, a link.
  for (const std::string& text : {std::string(), words + "more", words.substr(0, words.find("boot"))}) {
    std::ofstream(lock, std::ios::trunc) << text;
    EXPECT_TRUE(stays(dead)) << text;
  }
  std::ofstream(lock, std::ios::trunc) << words;
  fs::create_hard_link(lock, base() + "/second");
  EXPECT_TRUE(stays(dead));
  fs::remove(base() + "/second");
  fs::rename(dead, base() + "/scankit-other");
  fs::rename(lock, base() + "/scankit-other.lock");
  EXPECT_TRUE(stays(base() + "/scankit-other"));
  fs::rename(base() + "/scankit-other", dead);
  fs::rename(base() + "/scankit-other.lock", lock);
  // And it was nothing else that kept it.
  EXPECT_FALSE(stays(dead));
}

}  // namespace

}  // namespace scankit
