// SPDX-License-Identifier: Apache-2.0
// Which kernels the planner predicts to be fastest where no row of the table says it.
#include "kernels/selective_scan/cuda/choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "kernels/selective_scan/cuda/launch_parts.h"

namespace scankit::selective_scan {
namespace {

// But for a multiprocessor: of it nothing is measured.
constexpr device::DeviceFacts kH200 = {90, 131, 232448, 233472};
constexpr device::DeviceFacts kPascal = {61, 20, 49152, 98304};
// Not measured: a B200 and an RTX PRO 6000 Blackwell, by the CUDA programming guide's table of capabilities.
constexpr device::DeviceFacts kB200 = {100, 148, 232448, 233472};
constexpr device::DeviceFacts kRtxBlackwell = {120, 188, 101376, 102400};

Common problem(int batch, int dim, int length, int states) {
  Common c = {};
  c.batch = batch, c.dim = dim, c.length = length, c.states = states, c.groups = 1, c.dtype = DType::BF16;
  return c;
}
std::string symbol(const device::Plan& plan, int launch) {
  return kCudaKernels[plan.launches[launch].kernel].symbol;
}

// 4096 channels are 256 warps of the narrow slices, on 528 schedulers, and 1024 of the wide ones.
TEST(Choice, ManyStatesOfFewChannelsTakeMoreLanes) {
  device::Plan plan;
  device::Message message;
  const auto forward = [&](int batch, int dim, int states, const device::DeviceFacts& facts) {
    Forward f = {};
    f.common = problem(batch, dim, 2048, states);
    EXPECT_TRUE(plan_forward(f, facts, &plan, &message)) << message.text;
    return symbol(plan, 0);
  };
  for (const int states : {48, 64, 128, 256})
    EXPECT_EQ(forward(2, 2048, states, kH200), "scankit_forward_any_16x4") << states;
  EXPECT_EQ(forward(8, 2048, 64, kH200), "scankit_forward_any");
  EXPECT_EQ(forward(8, 2048, 17, kH200), "scankit_forward_any");
  EXPECT_EQ(forward(2, 2048, 128, kPascal), "scankit_forward_any");  // too little shared memory
}

// Two, four or no warps share channels, as those are few or many; 16-bit rows alone, and those at odd places by
// variants of their own.
TEST(Choice, ManyStatesAreLoopedOverByTeamsWhereChannelsAreFew) {
  Choice choice;
  const auto team = [&](int batch, int dim, int states, bool halves, DType dtype = DType::BF16) {
    Common c = problem(batch, dim, 2048, states);
    c.dtype = dtype;
    EXPECT_TRUE(choose_backward(c, kH200, &choice, halves));
    const Variant& v = kBackwardVariants[choice.variant];
    EXPECT_TRUE(v.sliced);
    EXPECT_EQ(v.halves, halves && dtype != DType::F32);
    EXPECT_EQ(v.odd, !halves && dtype != DType::F32);
    EXPECT_EQ(choice.warps % v.team, 0);
    return v.team;
  };
  EXPECT_EQ(team(8, 2048, 64, true), 1);
  EXPECT_EQ(team(4, 2048, 64, true), 2);
  EXPECT_EQ(team(1, 768, 32, true), 2);
  EXPECT_EQ(team(2, 2048, 128, true), 4);
  EXPECT_EQ(team(1, 768, 256, true), 4);
  EXPECT_EQ(team(8, 2048, 64, false), 1);
  EXPECT_EQ(team(2, 2048, 128, false), 4);
  EXPECT_EQ(team(2, 2048, 128, true, DType::F32), 1);
}

// Blackwell has no rows in the table: what is predicted fits its shared memory, registers and warps of a
// multiprocessor (64 on 10.0, 48 on 12.0), with at least four warps at work, in every kind of problem.
TEST(Choice, OnBlackwellFitsItsOwnLimits) {
  for (const device::DeviceFacts& facts : {kB200, kRtxBlackwell}) {
    const int most_warps = facts.capability >= 120 ? 48 : 64;
    for (const DType dtype : {DType::BF16, DType::F32}) {
      for (const int states : {1, 4, 8, 16, 64, 256}) {
        for (const auto& [batch, dim, length] :
             {std::array{8, 2048, 2048}, {1, 5120, 2048}, {64, 384, 197}}) {
          Common c = problem(batch, dim, length, states);
          c.dtype = dtype;
          for (const bool backward : {false, true}) {
            SCOPED_TRACE(std::to_string(facts.capability) + ", states " + std::to_string(states) + ", dim " +
                         std::to_string(dim) + (backward ? ", backward" : ", forward"));
            Choice choice;
            const bool halves = length % 4 == 0;
            ASSERT_TRUE(backward ? choose_backward(c, facts, &choice, halves)
                                 : choose_forward(c, facts, &choice, halves));
            const Variant& v = (backward ? kBackwardVariants : kForwardVariants)[choice.variant];
            EXPECT_TRUE(can_run(v, choice.warps, c, facts));
            const int shared = shared_bytes(v, choice.warps, states, dtype) + 1024;
            const int by_registers = v.resident_warps[dtype == DType::F32] / choice.warps;
            const int blocks = std::min(by_registers, facts.shared_per_multiprocessor / shared);
            EXPECT_GE(blocks * choice.warps, 4) << "warps";
            EXPECT_LE(blocks * choice.warps, most_warps);
          }
        }
      }
    }
  }
}

TEST(Choice, OneStateHasItsOwnKernels) {
  static float sink;
  device::Plan plan;
  device::Message message;
  for (const int states : {1, 2}) {
    Forward f = {};
    f.common = problem(8, 2048, 2048, states);
    ASSERT_TRUE(plan_forward(f, kH200, &plan, &message)) << message.text;
    ASSERT_EQ(plan.launch_count, 1);
    EXPECT_EQ(symbol(plan, 0), states == 1 ? "scankit_forward_1x1" : "scankit_forward_2x2");
    Backward b = {};
    b.common = f.common, b.x.data = &sink, b.dA = b.dB = b.dC = &sink;
    ASSERT_TRUE(plan_backward(b, kH200, &plan, &message)) << message.text;
    EXPECT_EQ(symbol(plan, 0), states == 1 ? "scankit_backward_1x1" : "scankit_backward_2x2");
  }
}

}  // namespace
}  // namespace scankit::selective_scan
