// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "doctor/host/embedded_program.h"

namespace scankit {
namespace {

TEST(GpuHelper, RunsFromMemory) {
  auto ran = run_gpu_helper({});
  ASSERT_TRUE(ran) << english(ran.error().message);
  EXPECT_EQ(ran->exit_code, 2);
  EXPECT_NE(ran->err.find("usage: scankit-gpu nvml"), std::string::npos);
}

TEST(GpuHelper, TellsAnAbsentLibraryFromAFailure) {
  auto ran = run_gpu_helper({"nvrtc-info", "--lib", "/nonexistent/libnvrtc.so.13"});
  ASSERT_TRUE(ran) << english(ran.error().message);
  EXPECT_EQ(ran->exit_code, kHelperAbsent);
  EXPECT_NE(ran->err.find("/nonexistent/libnvrtc.so.13"), std::string::npos);
}

TEST(GpuHelper, RefusesALibraryThatIsNoNvrtc) {
  auto ran = run_gpu_helper({"nvrtc-info", "--lib", "libc.so.6"});
  ASSERT_TRUE(ran) << english(ran.error().message);
  EXPECT_EQ(ran->exit_code, kHelperFailed);
}

// What lifts a program's floor is a version name in its string
// table; "GLIBC_2.34" cannot hide from a plain search.
TEST(GpuHelper, NeedsNothingNewerThanGlibc217) {
  const std::string_view program = gpu_helper_program();
  ASSERT_GT(program.size(), 4096u);
  unsigned names = 0;
  for (std::size_t at = program.find("GLIBC_2."); at != std::string_view::npos;
       at = program.find("GLIBC_2.", at + 1)) {
    ++names;
    EXPECT_LE(std::atoi(program.data() + at + 8), 17) << program.substr(at, 12);
  }
  EXPECT_GE(names, 1u);
  EXPECT_EQ(program.find("libstdc++"), std::string_view::npos);
  EXPECT_EQ(program.find("libgcc_s"), std::string_view::npos);
}

TEST(GpuHelper, ReadsRecordsWithBlanksInValues) {
  const auto records = parse_helper_records(
      "driver\tversion=580.159.04\tcuda=13.0\ngpu\tindex=0\tname=NVIDIA H200\tsm=90\n\nnoise without "
      "fields\n");
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].fields.at("cuda"), "13.0");
  EXPECT_EQ(records[1].kind, "gpu");
  EXPECT_EQ(records[1].fields.at("name"), "NVIDIA H200");
  EXPECT_TRUE(records[2].fields.empty());
}

TEST(GpuHelper, SaysWhenNvmlIsNotHere) {
  auto ran = run_gpu_helper({"nvml"});
  ASSERT_TRUE(ran) << english(ran.error().message);
  if (ran->exit_code == 0) {
    const auto records = parse_helper_records(ran->out);
    EXPECT_TRUE(
        std::any_of(records.begin(), records.end(), [](const auto& r) { return r.kind == "driver"; }));
  } else {
    EXPECT_FALSE(ran->err.empty());
  }
}

}  // namespace
}  // namespace scankit
