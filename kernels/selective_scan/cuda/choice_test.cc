// SPDX-License-Identifier: Apache-2.0
// Which kernels the planner predicts to be fastest where no row of the table says it.
#include "kernels/selective_scan/cuda/choice.h"

#include <gtest/gtest.h>

#include <string>

#include "kernels/selective_scan/cuda/launch_parts.h"

namespace scankit::selective_scan {
namespace {

// But for a multiprocessor: of it nothing is measured.
constexpr device::DeviceFacts kH200 = {90, 131, 232448, 233472};
constexpr device::DeviceFacts kPascal = {61, 20, 49152, 98304};

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
