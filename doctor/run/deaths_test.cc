// SPDX-License-Identifier: Apache-2.0
#include "doctor/run/deaths.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace scankit::run {
namespace {

TEST(CrashInLine, NamesTheFileOfOurProcess) {
  const std::string fault =
      "6,1,99,-;python3[41]: segfault at 0 ip 00007f20 sp 00007ffd error 4 in "
      "selective_scan_cuda.so[1119,7f2000001000+1000] likely on CPU 1";
  EXPECT_EQ(crash_in_line(fault, {40, 41}), "selective_scan_cuda.so");
  EXPECT_EQ(crash_in_line(fault, {4, 141}), std::nullopt);
  EXPECT_EQ(crash_in_line("6,1,9,-;traps: python[7] general protection fault ip:7f sp:7f error:0 in "
                          "_C.cpython-311.so[7f20+1]",
                          {7}),
            "_C.cpython-311.so");
  EXPECT_EQ(
      crash_in_line("6,1,9,-;traps: python[7] trap invalid opcode ip:7f sp:7f error:0 in a.so[7f+1]", {7}),
      "a.so");
}

TEST(CrashInLine, SaysNothingOfOtherLines) {
  EXPECT_EQ(crash_in_line("6,1,9,-;python[7]: segfault at 0 ip 0 sp 0 error 14", {7}), std::nullopt);
  EXPECT_EQ(crash_in_line("6,1,9,-;usb[7]: device in a.so[1]", {7}), std::nullopt);
  EXPECT_EQ(crash_in_line("", {7}), std::nullopt);
}

TEST(PidsIn, AreThoseOfTorchrun) {
  EXPECT_EQ(
      pids_in("failed (exitcode: -11) local_rank: 0 (pid: 41) of binary: x\n exitcode : -6 (pid: 42)\n"),
      (std::vector<pid_t>{41, 42}));
  EXPECT_EQ(pids_in("pid: x, pid: 99999999999999999999, pid: -3, pid: "), std::vector<pid_t>{});
}

TEST(MemoryKillInLine, NamesOurProcess) {
  const std::string group =
      "3,1,9,-;Memory cgroup out of memory: Killed process 3600 (python) total-vm:2831348kB, UID:0";
  EXPECT_TRUE(memory_kill_in_line(group, {7, 3600}));
  EXPECT_FALSE(memory_kill_in_line(group, {360, 36000}));
  EXPECT_TRUE(memory_kill_in_line("3,1,9,-;Out of memory: Killed process 41 (cicc) total-vm:1kB", {41}));
  EXPECT_FALSE(memory_kill_in_line("6,1,9,-;watchdog: Killed process 41 (cicc)", {41}));
  EXPECT_FALSE(memory_kill_in_line("", {41}));
}

TEST(OutOfMemoryKills, IsReadWithoutAnError) {
  const MemoryKills before = out_of_memory_kills(), after = out_of_memory_kills();
  EXPECT_GE(after.group, before.group);
  EXPECT_GE(after.machine, before.machine);
  const KernelDeaths deaths = deaths_in_kernel_log({::getpid()}, 0);
  EXPECT_EQ(deaths.crashed_in, "");
  EXPECT_EQ(deaths.memory_kills, 0u);
}

}  // namespace
}  // namespace scankit::run
