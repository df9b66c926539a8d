// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

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

class Root : public testing::Test {
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
    host_ = make_real_host(folder_->path() + "/");
  }
  std::string at(const std::string& name) const { return path_join(folder_->path(), name); }
  std::optional<TemporaryDirectory> folder_;
  std::unique_ptr<Host> host_;
};

TEST_F(Root, ResolvesLinksInsideTheRootOnly) {
  EXPECT_EQ(host_->read_file("/usr/lib/absolute").value_or("?"), "inside");
  EXPECT_EQ(host_->read_file("/usr/lib/upwards").value_or("?"), "inside");
  EXPECT_EQ(host_->realpath("/usr/lib/absolute").value_or("?"), "/etc/hostname");
  EXPECT_EQ(host_->readlink("/usr/lib/absolute").value_or("?"), "/etc/hostname");
}

TEST_F(Root, EndsLinkLoops) { EXPECT_EQ(host_->read_file("/loop").error().code, Errc::Io); }

TEST_F(Root, IsNotTheRunningSystem) {
  EXPECT_FALSE(host_->is_live());
  EXPECT_FALSE(host_->env("PATH"));
}

}  // namespace
}  // namespace scankit
