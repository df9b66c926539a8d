// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "doctor/base/files.h"

namespace scankit {
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
