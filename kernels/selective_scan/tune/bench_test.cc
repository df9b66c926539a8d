// SPDX-License-Identifier: Apache-2.0
// The tuner's bench without a GPU: device memory is the host's, and launches run the device code on the CPU
// (emulator.h). What it finds right and wrong is what it would find on a GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "kernels/selective_scan/cuda/emulated_bf16_test.h"
//
#include "kernels/selective_scan/tune/gpu_bench.h"

namespace scankit::selective_scan {
namespace {

constexpr device::DeviceFacts kFacts = {90, 132, 232448, 233472};
std::string g_left_out;  // a kernel that is not run: a defect

void run_launch(const device::Launch& launch) {
  if (kCudaKernels[launch.kernel].symbol != g_left_out) emulate(launch);
}

}  // namespace

// The GPU of check.h.
void* Gpu::allocate(std::size_t bytes) { return std::aligned_alloc(256, (bytes + 256) / 256 * 256); }
void Gpu::release(void* block) { std::free(block); }
void Gpu::fill(void* block, unsigned char value, std::size_t bytes) { std::memset(block, value, bytes); }
void Gpu::to_device(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
void Gpu::to_host(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
long long Gpu::free_bytes() const { return 1LL << 40; }
void Gpu::run(device::Plan& plan) {
  void* workspace = allocate(plan.workspace_bytes);
  fill(workspace, 0xff, plan.workspace_bytes);
  device::set_workspace(plan, workspace);
  for (int i = 0; i < plan.launch_count; ++i) run_launch(plan.launches[i]);
  release(workspace);
}
std::vector<float> Gpu::time(device::Plan& plan, void* workspace, int, int runs) {
  device::set_workspace(plan, workspace);
  for (int i = 0; i < plan.launch_count; ++i) run_launch(plan.launches[i]);
  return std::vector<float>(static_cast<std::size_t>(runs), 1.0f);
}

}  // namespace scankit::selective_scan

namespace scankit::device {
bool device_prepare(int, DeviceFacts* facts, Message*) {
  *facts = selective_scan::kFacts;
  return true;
}
}  // namespace scankit::device

namespace scankit::selective_scan {
namespace {

class TuneBench : public testing::TestWithParam<bool> {
 protected:
  ~TuneBench() override { g_left_out.clear(); }
  const Cell cell_ = {GetParam(), DType::BF16, 2, 20, 70, 16, 0};
  Gpu gpu_;
  GpuBench bench_{gpu_, kFacts};
};

TEST_P(TuneBench, FindsRightWhatIsRight) {
  ASSERT_EQ(bench_.open(cell_), "");
  Choice cut = predicted_choice(cell_, kFacts);
  EXPECT_EQ(bench_.judge(cut), "");
  cut.segments = 2, cut.pieces = 1;
  EXPECT_EQ(bench_.judge(cut), "");
  EXPECT_EQ(bench_.milliseconds(cut), 1.0);
}

TEST_P(TuneBench, FindsWrongWhatLeavesResultsUnwritten) {
  ASSERT_EQ(bench_.open(cell_), "");
  const Choice choice = predicted_choice(cell_, kFacts);
  ASSERT_EQ(bench_.judge(choice), "");  // the small case is known then
  g_left_out = std::string("scankit_") + (GetParam() ? "backward_" : "forward_") +
               std::string(variant_name(GetParam(), choice.variant));
  const std::string wrong = bench_.judge(choice);
  EXPECT_NE(wrong.find(GetParam() ? "du is off" : "out is off"), std::string::npos) << wrong;
  if (!GetParam()) return;
  g_left_out = "scankit_reduce";
  const std::string unreduced = bench_.judge(choice);
  EXPECT_NE(unreduced.find("dA is off"), std::string::npos) << unreduced;
  EXPECT_NE(unreduced.find("dB or dC differ"), std::string::npos) << unreduced;
}

TEST_P(TuneBench, FindsWrongWhatTheSmallCaseShows) {
  ASSERT_EQ(bench_.open(cell_), "");
  g_left_out = std::string("scankit_") + (GetParam() ? "backward_ends" : "forward_ends");
  Choice choice = predicted_choice(cell_, kFacts);
  choice.segments = 2, choice.pieces = 1;
  EXPECT_NE(bench_.judge(choice).find("WRONG"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Passes, TuneBench, testing::Bool(),
                         [](const auto& pass) { return pass.param ? "Backward" : "Forward"; });

}  // namespace
}  // namespace scankit::selective_scan
