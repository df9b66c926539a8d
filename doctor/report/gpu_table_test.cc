// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "doctor/report/text.h"

namespace scankit::report {
namespace {

Gpu h200() {
  Gpu gpu;
  gpu.memory = 150754820096;
  gpu.details = {{"multiprocessors", 132},
                 {"l2", 62914560},
                 {"shared_per_block", 232448},
                 {"core_clock", 345},
                 {"core_clock_max", 1980},
                 {"memory_clock", 3201},
                 {"memory_clock_max", 3201},
                 {"memory_bus", 6144},
                 {"power", 77},
                 {"power_limit", 700},
                 {"power_limit_default", 700},
                 {"ecc", 1},
                 {"ecc_uncorrected", 0},
                 {"mig", 0},
                 {"compute_mode", 0},
                 {"pcie_width", 16},
                 {"pcie_width_max", 16},
                 {"clocks_limited_by", 1}};
  return gpu;
}

std::string value_of(const Gpu& gpu, const std::string& label) {
  for (const GpuRow& row : gpu_rows(gpu))
    if (row.label == label) return row.value;
  return "no row";
}

std::string only_line(Gpu gpu, const std::map<std::string, std::int64_t>& changes) {
  for (const auto& [key, value] : changes) gpu.details[key] = value;
  const auto lines = unusual_of(gpu);
  return lines.size() == 1 ? lines.front() : std::to_string(lines.size()) + " lines";
}

TEST(GpuTable, ShowsWhatIsKnownWithItsUnit) {
  const Gpu gpu = h200();
  EXPECT_EQ(value_of(gpu, "memory"), "143771 MiB");
  EXPECT_EQ(value_of(gpu, "L2 cache"), "60 MiB");
  EXPECT_EQ(value_of(gpu, "shared memory per block"), "227 KiB");
  EXPECT_EQ(value_of(gpu, "core clock"), "345 MHz, at most 1980 MHz");
  EXPECT_EQ(value_of(gpu, "memory bus"), "6144 bit, 4917 GB/s");  // 4.8 TB/s in NVIDIA's data sheet
  EXPECT_EQ(value_of(gpu, "power"), "77 W, limit 700 W");
  EXPECT_EQ(value_of(gpu, "ECC"), "on");
  EXPECT_EQ(value_of(gpu, "PCIe lanes"), "16, at most 16");
}

TEST(GpuTable, HasNoRowForWhatTheDriverDidNotTell) {
  EXPECT_TRUE(gpu_rows(Gpu()).empty());
  EXPECT_EQ(value_of(h200(), "NVLinks"), "no row");
  EXPECT_EQ(value_of(h200(), ""), "no row");
}

TEST(GpuTable, SaysWhatIsUnusualAndNothingElse) {
  const Gpu gpu = h200();
  EXPECT_TRUE(unusual_of(gpu).empty());
  EXPECT_TRUE(unusual_of(Gpu()).empty());
  EXPECT_NE(only_line(gpu, {{"pcie_width", 1}}).find("1 of 16 lanes"), std::string::npos);
  EXPECT_NE(only_line(gpu, {{"compute_mode", 2}}).find("prohibited"), std::string::npos);
  EXPECT_NE(only_line(gpu, {{"compute_mode", 3}}).find("exclusive"), std::string::npos);
  EXPECT_NE(only_line(gpu, {{"mig", 1}}).find("MIG"), std::string::npos);
  EXPECT_NE(only_line(gpu, {{"ecc_uncorrected", 2}}).find("2 memory errors"), std::string::npos);
  EXPECT_NE(only_line(gpu, {{"remapping_pending", 1}}).find("reset"), std::string::npos);
  EXPECT_NE(only_line(gpu, {{"remapping_failed", 1}, {"remapping_pending", 1}}).find("replace"),
            std::string::npos);
  EXPECT_NE(only_line(gpu, {{"clocks_limited_by", 0x40}}).find("too hot"), std::string::npos);
  EXPECT_NE(only_line(gpu, {{"clocks_limited_by", 0x80}}).find("lowers the clock"), std::string::npos);
  EXPECT_EQ(only_line(gpu, {{"clocks_limited_by", 0x4}}), "0 lines");  // the power limit, under load
  EXPECT_NE(only_line(gpu, {{"power_limit", 300}}).find("300 W of 700 W"), std::string::npos);
}

}  // namespace
}  // namespace scankit::report
