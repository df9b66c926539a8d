// SPDX-License-Identifier: Apache-2.0
#include "doctor/knowledge/cuda_support.h"

#include <gtest/gtest.h>

namespace scankit::knowledge {
namespace {

TEST(KnownGpu, NamesTheCapabilityOfADevice) {
  EXPECT_EQ(known_gpu("2335")->sm, "90");   // H200
  EXPECT_EQ(known_gpu("20b2")->sm, "80");   // A100
  EXPECT_EQ(known_gpu("1db4")->sm, "70");   // V100
  EXPECT_EQ(known_gpu("2b85")->sm, "120");  // GeForce RTX 5090
}

TEST(KnownGpu, KnowsNothingOfOtherIds) {
  EXPECT_FALSE(known_gpu("ffff"));
  EXPECT_FALSE(known_gpu(""));
  EXPECT_FALSE(known_gpu("xyz"));
}

TEST(KnownTegra, NamesTheCapabilityOfAChip) {
  EXPECT_EQ(known_tegra("nvidia,tegra194")->sm, "72");
  EXPECT_EQ(known_tegra("nvidia,tegra234")->sm, "87");
  EXPECT_EQ(known_tegra("nvidia,tegra264")->sm, "110");
  EXPECT_FALSE(known_tegra("nvidia,tegra2"));
  EXPECT_FALSE(known_tegra("nvidia,p3737-0000+p3701-0000"));  // a board, which stands before its chip
  EXPECT_FALSE(known_tegra(""));
}

TEST(Jetson, SaysWhichCudaItsDriverSupports) {
  EXPECT_EQ(cuda_of_jetson("32.3.1"), "10.0");
  EXPECT_EQ(cuda_of_jetson("32.7.4"), "10.2");
  EXPECT_EQ(cuda_of_jetson("35.5.0"), "11.4");
  EXPECT_EQ(cuda_of_jetson("36.3"), "12.2");
  EXPECT_EQ(cuda_of_jetson("36.4.3"), "12.6");
  EXPECT_EQ(cuda_of_jetson("38.4"), "13.0");
  for (const char* unknown : {"", "28.2", "39.0", "x"}) EXPECT_EQ(cuda_of_jetson(unknown), "") << unknown;
}

TEST(NvccArchs, BeginAndEndWithReleases) {
  EXPECT_EQ(nvcc_knows_arch("11.7", "90"), false);
  EXPECT_EQ(nvcc_knows_arch("11.8", "90"), true);
  EXPECT_EQ(nvcc_knows_arch("12.9", "70"), true);
  EXPECT_EQ(nvcc_knows_arch("13.0", "70"), false);
  EXPECT_EQ(nvcc_knows_arch("13.0", "110"), true);
}

TEST(NvccArchs, SaysNothingOfWhatTheTableDoesNotHold) {
  EXPECT_EQ(nvcc_knows_arch("12.4", "999"), std::nullopt);
  EXPECT_EQ(nvcc_knows_arch("", "90"), std::nullopt);
}

Version v(const char* text) { return *Version::parse(text); }

TEST(Drivers, KnowTheNewestCudaOfADriver) {
  EXPECT_EQ(cuda_of_driver(v("580.159.04"))->cuda, v("13.0"));
  EXPECT_EQ(cuda_of_driver(v("470.256.02"))->cuda, v("11.4"));
  EXPECT_EQ(cuda_of_driver(v("570.86"))->cuda, v("12.8"));
  EXPECT_EQ(cuda_of_driver(v("537.13"))->cuda, v("12.2"));  // Windows, branch 535
  EXPECT_FALSE(cuda_of_driver(v("390.157")));
}

TEST(Drivers, SayWhereTheirTableEnds) {
  EXPECT_FALSE(cuda_of_driver(v("590.44.01"))->or_newer);
  EXPECT_FALSE(cuda_of_driver(v("595.71.05"))->or_newer);
  EXPECT_EQ(cuda_of_driver(v("610.43.02"))->cuda, v("13.3"));
  EXPECT_TRUE(cuda_of_driver(v("700.1"))->or_newer);
  EXPECT_FALSE(minimum_driver(v("14.0")));
  EXPECT_FALSE(cuda_of_ptx("12.0"));
}

TEST(Drivers, StartAnyReleaseOfTheirMajor) {
  EXPECT_EQ(minimum_driver(v("12.8")), v("525.60.13"));
  EXPECT_EQ(minimum_driver(v("13.0")), v("580.65.06"));
  EXPECT_EQ(minimum_driver(v("11.8")), v("450.80.02"));
  EXPECT_EQ(minimum_driver(v("10.2")), v("440.33"));
}

TEST(Drivers, CompileAndUnpackWhatTheirTimeKnew) {
  EXPECT_EQ(cuda_of_ptx("9.0"), v("13.0"));
  EXPECT_EQ(cuda_of_ptx("8.5"), v("12.5"));
  EXPECT_EQ(cuda_of_ptx("9.2"), v("13.2"));
  EXPECT_EQ(driver_that_unpacks("zstd"), v("550.54.14"));
  EXPECT_FALSE(driver_that_unpacks("lz4"));
  EXPECT_FALSE(driver_that_unpacks("none"));
}

TEST(Drivers, ReadTheCubinsOfTheirTime) {
  EXPECT_EQ(driver_of_first_cuda(120), v("570.26"));
  EXPECT_EQ(driver_of_first_cuda(103), v("575.51.03"));
  EXPECT_EQ(driver_of_first_cuda(60), std::nullopt) << "older than all releases of the table";
  EXPECT_EQ(driver_of_first_cuda(130), std::nullopt);
  EXPECT_EQ(drivers_of_cubin_abi(7, 90)->reads, v("410.48"));
  EXPECT_EQ(drivers_of_cubin_abi(8, 90)->reads_text, "580.65.06");
  EXPECT_EQ(drivers_of_cubin_abi(8, 90)->refused_below, v("570.26"));
  EXPECT_EQ(drivers_of_cubin_abi(8, 100)->reads, v("570.26"));
  EXPECT_EQ(drivers_of_cubin_abi(8, 120)->reads, v("570.26"));
  EXPECT_FALSE(drivers_of_cubin_abi(9, 90));
}

}  // namespace

}  // namespace scankit::knowledge
