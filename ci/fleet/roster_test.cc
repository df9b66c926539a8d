// SPDX-License-Identifier: Apache-2.0
#include "ci/fleet/roster.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor/base/files.h"

namespace scankit::fleet {
namespace {

TEST(Roster, IsReadFromARegularFileAlone) {
  const auto folder = TemporaryDirectory::create("roster");
  const std::string file = folder->path() + "/" + kRosterFile;
  EXPECT_EQ(read_roster(folder->path()).error().code, Errc::NotFound);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  ::alarm(20);  // a reader that waits for the pipe would wait for ever
  EXPECT_EQ(read_roster(folder->path()).error().code, Errc::Unsupported);
  ::alarm(0);
  ::unlink(file.c_str());
  ASSERT_TRUE(write_roster(folder->path(), {}));
  EXPECT_TRUE(read_roster(folder->path()));
}

TEST(Roster, IsNotLockedThroughALink) {
  const auto folder = TemporaryDirectory::create("roster");
  const std::string victim = folder->path() + "/victim";
  ASSERT_EQ(::symlink(victim.c_str(), (folder->path() + "/fleet.lock").c_str()), 0);
  EXPECT_FALSE(lock_folder(folder->path()));
  EXPECT_NE(::access(victim.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace scankit::fleet
