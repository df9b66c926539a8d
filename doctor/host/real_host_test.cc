// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

#include "doctor/base/files.h"
#include "doctor/host/host.h"

namespace scankit {
namespace {

TEST(RealHost, ReadsFilesWhoseSizeTheKernelDoesNotSay) {
  auto host = make_real_host();
  auto text = host->read_file("/proc/self/status");
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("Name:"), std::string::npos);
}

TEST(RealHost, RefusesAnythingButRegularFiles) {
  auto host = make_real_host();
  EXPECT_EQ(host->read_file("/dev/zero").error().code, Errc::Unsupported);
  EXPECT_EQ(host->open("/").error().code, Errc::Unsupported);
}

TEST(RealHost, NeverReadsBeyondTheEnd) {
  auto host = make_real_host();
  auto source = host->open("/etc/passwd");
  ASSERT_TRUE(source);
  char byte = 0;
  EXPECT_FALSE((*source)->read((*source)->size(), &byte, 1));
  EXPECT_FALSE((*source)->read(~std::uint64_t{0}, &byte, 1));
}

class Root : public testing::TestWithParam<RootAccess> {
 protected:
  void SetUp() override {
    auto made = TemporaryDirectory::create("scankit-root");
    ASSERT_TRUE(made);
    folder_.emplace(std::move(*made));
    ASSERT_TRUE(make_directories(at("etc")));
    ASSERT_TRUE(make_directories(at("usr/lib")));
    ASSERT_TRUE(write_file_atomically(at("etc/hostname"), "inside"));
    ASSERT_EQ(::symlink("/etc/hostname", at("usr/lib/absolute").c_str()), 0);
    ASSERT_EQ(::symlink("../../../../../etc/hostname", at("usr/lib/upwards").c_str()), 0);
    ASSERT_EQ(::symlink("loop", at("loop").c_str()), 0);
    host_ = make_real_host(folder_->path() + "/", GetParam());
  }
  std::string at(const std::string& name) const { return path_join(folder_->path(), name); }
  std::optional<TemporaryDirectory> folder_;
  std::unique_ptr<Host> host_;
};

TEST_P(Root, ResolvesLinksInsideTheRootOnly) {
  EXPECT_EQ(host_->read_file("/usr/lib/absolute").value_or("?"), "inside");
  EXPECT_EQ(host_->read_file("/usr/lib/upwards").value_or("?"), "inside");
  EXPECT_EQ(host_->realpath("/usr/lib/absolute").value_or("?"), "/etc/hostname");
  EXPECT_EQ(host_->readlink("/usr/lib/absolute").value_or("?"), "/etc/hostname");
}

TEST_P(Root, EndsLinkLoops) { EXPECT_EQ(host_->read_file("/loop").error().code, Errc::Io); }

TEST_P(Root, IsNotTheRunningSystem) {
  EXPECT_FALSE(host_->is_live());
  EXPECT_FALSE(host_->env("PATH"));
}

TEST_P(Root, AnswersAsTheSystemInItWould) {
  EXPECT_EQ(host_->stat("/usr/lib/absolute")->kind, FileKind::Regular);
  EXPECT_EQ(host_->lstat("/usr/lib/absolute")->kind, FileKind::Symlink);
  EXPECT_EQ(host_->stat("/")->kind, FileKind::Directory);
  EXPECT_EQ(host_->realpath("/usr/../usr/lib/./upwards").value_or("?"), "/etc/hostname");
  EXPECT_EQ(host_->realpath("/..").value_or("?"), "/");
  EXPECT_EQ(host_->list("/usr/lib")->size(), 2u);
  EXPECT_EQ(host_->list("/../../etc")->front().name, "hostname");
  EXPECT_EQ(host_->read_file("/etc").error().code, Errc::Unsupported);
  EXPECT_EQ(host_->read_file("/etc/none").error().code, Errc::NotFound);
  EXPECT_EQ(host_->read_file("/etc/hostname/below").error().code, Errc::NotFound);
  EXPECT_EQ(host_->stat("/none/../etc").error().code, Errc::NotFound);
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_EQ(host_->read_file("/pipe").error().code, Errc::Unsupported);  // at once
}

// A folder and a link to a folder outside take turns, as whoever runs in that container could have it.
TEST_P(Root, CannotBeRacedOutOf) {
  const auto outside = TemporaryDirectory::create("scankit-outside");
  ASSERT_TRUE(outside && make_directories(at("site/demo")));
  ASSERT_TRUE(write_file_atomically(outside->path() + "/METADATA", "secret"));
  ASSERT_EQ(::symlink("nowhere", (outside->path() + "/pointer").c_str()), 0);
  ASSERT_TRUE(write_file_atomically(at("site/demo/METADATA"), "inside"));
  ASSERT_EQ(::symlink(outside->path().c_str(), at("site/link").c_str()), 0);
  std::atomic<bool> stop{false};
  std::thread swapper([&, from = at("site/demo"), to = at("site/link")] {
    while (!stop) (void)::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE);
  });
  unsigned reads = 0, leaks = 0, right = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(3);
  while (std::chrono::steady_clock::now() < end) {
    const auto text = host_->read_file("/site/demo/METADATA");
    right += text && *text == "inside";
    leaks += text && *text == "secret";
    const auto info = host_->stat("/site/demo/METADATA");
    const auto entries = host_->list("/site/demo");
    leaks += entries && entries->size() == 2;
    leaks += host_->readlink("/site/demo/pointer").has_value();
    leaks += info && info->inode == make_real_host()->stat(outside->path() + "/METADATA")->inode;
    ++reads;
  }
  stop = true;
  swapper.join();
  EXPECT_EQ(leaks, 0u) << "of " << reads;
  EXPECT_GT(right, 0u);
  RecordProperty("reads", static_cast<int>(reads));
}

INSTANTIATE_TEST_SUITE_P(ByTheKernel, Root, testing::Values(RootAccess::Kernel));
INSTANTIATE_TEST_SUITE_P(ByTheWalk, Root, testing::Values(RootAccess::Walk));

}  // namespace
}  // namespace scankit
