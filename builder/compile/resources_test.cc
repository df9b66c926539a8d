// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "builder/compile/build.h"
#include "doctor/base/files.h"

namespace scankit::compile {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

class Resources : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(make_directories(path_dirname(root.path() + path)));
    ASSERT_TRUE(write_file_atomically(root.path() + path, text));
  }
  std::uint64_t free() {
    return free_memory(*make_real_host(root.path()), {.total = 64 << 20, .available = 8000 * kMiB});
  }
  TemporaryDirectory root = TemporaryDirectory::create("room").value();
};

TEST_F(Resources, IsWhatTheMachineHasWithoutLimits) {
  EXPECT_EQ(free(), 8000 * kMiB);
  write("/proc/self/cgroup", "0::/job\n");
  write("/sys/fs/cgroup/job/memory.max", "max\n");
  EXPECT_EQ(free(), 8000 * kMiB);
}

TEST_F(Resources, IsWhatTheTightestGroupLeaves) {
  write("/proc/self/cgroup", "0::/slice/job\n");
  write("/sys/fs/cgroup/slice/job/memory.max", std::to_string(4000 * kMiB));
  write("/sys/fs/cgroup/slice/job/memory.current", std::to_string(1000 * kMiB));
  EXPECT_EQ(free(), 3000 * kMiB);
  write("/sys/fs/cgroup/slice/job/memory.stat", "anon 1\ninactive_file " + std::to_string(600 * kMiB) + "\n");
  EXPECT_EQ(free(), 3600 * kMiB);
  write("/sys/fs/cgroup/slice/memory.max", std::to_string(500 * kMiB));
  write("/sys/fs/cgroup/slice/memory.current", std::to_string(900 * kMiB));
  EXPECT_EQ(free(), 0u);
}

TEST_F(Resources, ReadsTheOlderGroups) {
  write("/proc/self/cgroup", "4:cpu,memory:/slurm/job\n");
  write("/sys/fs/cgroup/memory/slurm/job/memory.limit_in_bytes", std::to_string(2000 * kMiB));
  write("/sys/fs/cgroup/memory/slurm/job/memory.usage_in_bytes", std::to_string(1500 * kMiB));
  EXPECT_EQ(free(), 500 * kMiB);
}

TEST_F(Resources, TooLittleIsSaidWithTheFix) {
  const auto host = make_real_host(root.path());
  const auto memory = [](std::uint64_t mib) { return Probed<Memory>::of({.available = mib * kMiB}); };
  EXPECT_TRUE(check_resources(*host, memory(1000), {root.path() + "/not/yet/there"}));
  EXPECT_TRUE(check_resources(*host, Probed<Memory>::failed("not read"), {}));
  const auto none = check_resources(*host, memory(50), {});
  ASSERT_FALSE(none);
  EXPECT_NE(english(none.error().message).find("50 MB are free"), std::string::npos);
  EXPECT_NE(english(none.error().hint).find("--mem"), std::string::npos);
  const auto full = check_resources(*host, memory(1000), {"/proc"});  // a file system without any room
  ASSERT_FALSE(full);
  EXPECT_NE(english(full.error().hint).find("--cache-dir"), std::string::npos);
}

}  // namespace
}  // namespace scankit::compile
