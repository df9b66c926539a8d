// SPDX-License-Identifier: Apache-2.0
#include "validate/judge/kernel_use.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "doctor/base/files.h"
#include "kernels/common/image_file_test.h"
#include "kernels/selective_scan/cuda/launch.h"
#include "validate/judge/judge.h"
#include "validate/report/report.h"

namespace scankit::validate {
namespace {

// An H200, and a training step of a block of Mamba timed on it.
Validation timed_on_h200() {
  Validation v;
  v.gpu_facts = {{"capability_major", 9},
                 {"capability_minor", 0},
                 {"multiprocessors", 132},
                 {"shared_per_block", 232448},
                 {"shared_per_multiprocessor", 233472},
                 {"threads_per_multiprocessor", 2048}};
  for (const char* pass : {"fwd", "bwd"})
    v.timings.push_back({"cuda:0", pass, "bf16", 8, 2048, 2048, 16, "warm", {}, {}, {}});
  return v;
}

TEST(KernelUse, NamesTheKernelsThatTheModulesOwnPlannerLaunches) {
  const auto kernels = launched_kernels(timed_on_h200());
  ASSERT_GE(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].unit, "forward_bf16");
  EXPECT_EQ(kernels[0].name, "scankit_forward_2x8");  // as launch_test.cc has it
  EXPECT_EQ(kernels[0].of, "fwd B8 D2048 L2048 N16 bf16");
  EXPECT_EQ(kernels[1].unit, "backward_bf16");
  for (const KernelUse& k : kernels) {
    EXPECT_GT(k.blocks, 0u) << k.name;
    EXPECT_EQ(k.threads % 32, 0u) << k.name;
    EXPECT_LT(k.bank_conflicts.value_or(0), 0.34) << k.name;
  }
}

TEST(KernelUse, BankConflictsAreOfTheSameGpuDtypeAndKernel) {
  using selective_scan::DType;
  const BankRow rows[] = {
      {90, DType::BF16, "a", 9, 8}, {90, DType::F32, "a", 12, 8}, {90, DType::F32, "b", 0, 0}};
  EXPECT_EQ(bank_conflicts_in(rows, 90, DType::BF16, "a"), 0.125);
  EXPECT_EQ(bank_conflicts_in(rows, 90, DType::F32, "a"), 0.5);
  EXPECT_EQ(bank_conflicts_in(rows, 80, DType::F32, "a"), std::nullopt);
  EXPECT_EQ(bank_conflicts_in(rows, 90, DType::F16, "a"), std::nullopt);
  EXPECT_EQ(bank_conflicts_in(rows, 90, DType::F32, "b"), std::nullopt);
}

TEST(KernelUse, RecordedBankConflictsAreOfKernelsThatExist) {
  for (const BankRow& row : recorded_bank_rows()) {
    const std::span kernels(selective_scan::kCudaKernels, std::size_t(selective_scan::kCudaKernelCount));
    EXPECT_TRUE(std::any_of(kernels.begin(), kernels.end(), [&](const auto& k) {
      return row.symbol == k.symbol;
    })) << row.symbol;
    EXPECT_GT(row.least, 0) << row.symbol;
    EXPECT_GE(row.wavefronts, row.least) << row.symbol;
  }
}

TEST(KernelUse, TellsEachLaunchOnce) {
  Validation v = timed_on_h200();
  const auto once = launched_kernels(v);
  v.timings.push_back(v.timings[0]);
  v.timings.back().cache = "cold";
  EXPECT_EQ(launched_kernels(v).size(), once.size());
  v.timings.push_back(v.timings[0]);
  v.timings.back().dtype = "fp32";
  EXPECT_GT(launched_kernels(v).size(), once.size());
}

TEST(KernelUse, KnowsNothingWithoutAGpu) {
  Validation v = timed_on_h200();
  v.gpu_facts.clear();
  EXPECT_TRUE(launched_kernels(v).empty());
  Validation cpu = timed_on_h200();
  for (Timing& t : cpu.timings) t.device = "cpu";
  EXPECT_TRUE(launched_kernels(cpu).empty());
}

TEST(KernelUse, ModulesOfOthersAreLeftAlone) {
  Validation v = timed_on_h200();
  v.module_file = "/proc/self/exe";  // no index of images
  look_at_kernels({}, {"/nowhere/script.py", ""}, v);
  EXPECT_TRUE(v.kernels.empty());
  EXPECT_TRUE(v.notes.empty());
}

// The smallest cubin whose section table is at its end, behind 4096 zeros, as an LZ4 block: its header as
// literals, the zeros as a match at distance 1, and one empty section header as literals.
std::string packed_cubin(std::uint64_t table) {
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 1;
  header.e_shoff = table;
  const std::string literals = {static_cast<char>(64 - 15)};
  return "\xff" + literals + std::string(reinterpret_cast<const char*>(&header), sizeof header) + '\1' +
         '\0' + std::string((4096 - 4 - 15) / 255, '\xff') + static_cast<char>((4096 - 4 - 15) % 255) +
         "\xf0" + literals + std::string(64, '\0');
}

TEST(KernelUse, PackedCubinsAreReadUnpacked) {
  const auto folder = TemporaryDirectory::create("kernel-use");
  const auto notes = [&](std::uint64_t table) {
    Validation v = timed_on_h200();
    v.module_file = path_join(folder->path(), "module.so");
    EXPECT_TRUE(write_file_atomically(v.module_file, image_file({{device::kImageCubin, 90, "forward_bf16",
                                                                  packed_cubin(table), 64 + 4096 + 64}})));
    look_at_kernels({}, {"/nowhere/script.py", ""}, v);
    return v.notes.size();
  };
  EXPECT_EQ(notes(64 + 4096), 0u);
  EXPECT_EQ(notes(64 + 4096 + 1), 1u);  // its section table is outside the file
}

TEST(KernelUse, OccupancyAndWavesComeOfTheDriversAnswer) {
  Validation v = timed_on_h200();
  KernelUse use{"forward_bf16", "scankit_forward_4x4", "fwd"};
  use.threads = 128, use.blocks = 1056, use.registers = 96, use.stack_bytes = 0,
  use.dynamic_shared_bytes = 4096;
  EXPECT_FALSE(fit_of(use, v).known);
  use.blocks_per_multiprocessor = 4;
  use.bank_conflicts = 0.125;
  EXPECT_DOUBLE_EQ(fit_of(use, v).occupancy, 0.25);
  EXPECT_DOUBLE_EQ(fit_of(use, v).waves, 2);
  for (const char* fact : {"threads_per_multiprocessor", "multiprocessors"}) {
    Validation without = v;
    without.gpu_facts.erase(fact);
    EXPECT_FALSE(fit_of(use, without).known) << fact;
  }
  for (Timing& t : v.timings) t.ms["module"] = {1, 1, 1, 1, 1, 1};
  v.kernels = {use};
  const std::string text = text_report(v, {});
  EXPECT_NE(text.find("forward_bf16 forward_4x4"), std::string::npos) << text;
  EXPECT_NE(text.find("25.0 %   2.00"), std::string::npos) << text;
  EXPECT_NE(text.find("12.5 %  fwd"), std::string::npos) << text;
  EXPECT_NE(json_report(v).find("\"bank_conflicts\": 0.125"), std::string::npos);
  EXPECT_NE(json_report(v).find("\"blocks_per_multiprocessor\": 4"), std::string::npos);
  EXPECT_NE(report::render("html", validation_views(v, 0)).find("<td>25.00 %</td>"), std::string::npos);
}

}  // namespace
}  // namespace scankit::validate
