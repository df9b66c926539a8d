// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/cuda/kept_states.h"
#include "kernels/selective_scan/cuda/launch_problem_test.h"

namespace scankit::selective_scan {
namespace {

TEST(Launch, ForwardTakesTheUnitOfItsType) {
  device::Plan plan;
  device::Message message;
  const char* const units[] = {"forward_f32", "forward_f16", "forward_bf16"};
  for (int dtype = 0; dtype < 3; ++dtype) {
    Forward f = {};
    f.common = problem(8, 2048, 2048, 16, 1, static_cast<DType>(dtype));
    ASSERT_TRUE(plan_forward(f, kH200, &plan, &message)) << message.text;
    ASSERT_EQ(plan.launch_count, 1);
    EXPECT_EQ(unit(plan, 0), units[dtype]);
    EXPECT_EQ(symbol(plan, 0), "scankit_forward_2x8");
    EXPECT_EQ(plan.workspace_bytes, 0u);
  }
}

// What comes a tile ahead lies in shared memory meanwhile: where a multiprocessor has 100 KB, as that of
// capability 8.6 and of later cards, too few warps would be left.
TEST(Launch, TheBackwardReadsAheadWhereSharedMemoryHasRoom) {
  constexpr device::DeviceFacts kSmall = {86, 84, 101376, 102400};
  device::Plan plan;
  device::Message message;
  const Backward b = backward_of(problem(8, 2048, 2048, 16, 1, DType::BF16));
  ASSERT_TRUE(plan_backward(b, kH200, &plan, &message)) << message.text;
  EXPECT_EQ(symbol(plan, 0), "scankit_backward_1x16");
  ASSERT_TRUE(plan_backward(b, kSmall, &plan, &message)) << message.text;
  EXPECT_EQ(symbol(plan, 0), "scankit_backward_4x4_straight");
}
// The kernel that loops over 16 states takes rows of whole quads alone, 16-bit ones at 8-byte places and fp32
// ones at 16-byte places; asked for otherwise, it is refused.
TEST(Launch, TheLoopOverStatesIsForRowsThatCanBeCopied) {
  device::Plan plan;
  device::Message message;
  Backward b = backward_of(problem(8, 2048, 2048, 16, 1, DType::BF16));
  Choice loop, states;
  ASSERT_TRUE(choose_backward(b.common, kH200, &loop));
  ASSERT_TRUE(choose_forward(b.common, kH200, &states));
  ASSERT_TRUE(kBackwardVariants[loop.variant].halves);
  alignas(16) constexpr char kMemory[16] = {};  // a place; nobody reads it
  b.dout.data = kMemory + 4;
  ASSERT_TRUE(plan_backward(b, kH200, &plan, &message)) << message.text;
  EXPECT_NE(symbol(plan, 0), "scankit_backward_1x16");
  EXPECT_FALSE(plan_backward_as(b, loop, states, &plan, &message));
  EXPECT_NE(std::string(message.text).find("rows of whole quads"), std::string::npos);
  b = backward_of(problem(8, 2048, 2046, 16, 1, DType::BF16));
  ASSERT_TRUE(plan_backward(b, kH200, &plan, &message)) << message.text;
  EXPECT_NE(symbol(plan, 0), "scankit_backward_1x16");
  b = backward_of(problem(8, 2048, 2044, 16, 1, DType::F32));
  ASSERT_TRUE(plan_backward(b, kH200, &plan, &message)) << message.text;
  EXPECT_EQ(symbol(plan, 0), "scankit_backward_1x16");
  b.dout.data = kMemory + 8;
  EXPECT_FALSE(plan_backward_as(b, loop, states, &plan, &message));
  ASSERT_TRUE(plan_backward(b, kH200, &plan, &message)) << message.text;
  EXPECT_EQ(symbol(plan, 0), "scankit_backward_4x4");
}

// 16-bit rows at odd places have forward kernels of their own, by their length or by where a tensor begins.
TEST(Launch, TheForwardOfRowsAtOddPlacesCopiesThem) {
  device::Plan plan;
  device::Message message;
  alignas(16) constexpr char kMemory[16] = {};  // a place; nobody reads it
  const auto is_odd = [&](int batch, int dim, int length, int states, DType dtype, int place) {
    Forward f = {};
    f.common = problem(batch, dim, length, states, 1, dtype);
    f.common.u.data = kMemory + place;
    EXPECT_TRUE(plan_forward(f, kH200, &plan, &message)) << message.text;
    return symbol(plan, plan.launch_count - 1).ends_with("_odd");
  };
  for (const int length : {33, 197, 198, 2047, 4099}) {
    EXPECT_TRUE(is_odd(8, 2048, length, 16, DType::BF16, 0)) << length;
    EXPECT_TRUE(is_odd(2, 1536, length, 9, DType::F16, 0)) << length;
    EXPECT_FALSE(is_odd(8, 2048, length, 16, DType::F32, 0)) << length;
    EXPECT_FALSE(is_odd(8, 2048, length, 8, DType::BF16, 0)) << length;
    EXPECT_FALSE(is_odd(8, 2048, length, 17, DType::BF16, 0)) << length;
  }
  EXPECT_FALSE(is_odd(8, 2048, 2048, 16, DType::BF16, 0));
  EXPECT_TRUE(is_odd(8, 2048, 2048, 16, DType::BF16, 2));
}

TEST(Launch, EveryStateCountHasAVariantThatHoldsIt) {
  device::Plan plan;
  device::Message message;
  for (const device::DeviceFacts& facts : {kH200, kPascal}) {
    for (int states = 1; states <= kMaxStates; ++states) {
      Choice forward, backward;
      const Common c = problem(2, 96, 100, states);
      ASSERT_TRUE(choose_forward(c, facts, &forward)) << states;
      ASSERT_TRUE(choose_backward(c, facts, &backward)) << states;
      const Variant& f = kForwardVariants[forward.variant];
      const Variant& b = kBackwardVariants[backward.variant];
      EXPECT_TRUE(f.sliced || f.lanes * f.per_lane >= states) << states;
      EXPECT_TRUE(b.sliced || b.lanes * b.per_lane >= states) << states;
      EXPECT_LE(shared_bytes(f, forward.warps, states, c.dtype), facts.shared_per_block);
      EXPECT_LE(shared_bytes(b, backward.warps, states, c.dtype), facts.shared_per_block);
      EXPECT_TRUE(plan_backward(backward_of(c), facts, &plan, &message)) << message.text;
    }
  }
}

TEST(Launch, BlocksCoverEveryChannelOfEveryGroup) {
  for (const int groups : {1, 2, 3}) {
    for (const int per_group : {1, 15, 16, 17, 33, 70000}) {
      const Common c = problem(3, groups * per_group, 40, 16, groups);
      Choice choice;
      ASSERT_TRUE(choose_forward(c, kH200, &choice));
      const Variant& v = kForwardVariants[choice.variant];
      const Index of_block = Index{choice.warps} * v.warp_channels;
      EXPECT_EQ(block_count(v, choice.warps, c), 3 * groups * ((per_group + of_block - 1) / of_block));
    }
  }
}

TEST(Launch, BackwardSumsSlabsAndTakesStatesFromTheWorkspaceOnlyWhereNeeded) {
  device::Plan plan;
  device::Message message;
  Backward b = backward_of(problem(2, 96, 100, 16));
  ASSERT_TRUE(plan_backward(b, kH200, &plan, &message)) << message.text;
  ASSERT_EQ(plan.launch_count, 2);
  EXPECT_EQ(unit(plan, 0), "backward_bf16");
  EXPECT_EQ(symbol(plan, 1), "scankit_reduce");
  const std::size_t slabs = plan.workspace_bytes;
  EXPECT_GT(slabs, 0u);

  b.x.data = nullptr;
  ASSERT_TRUE(plan_backward(b, kH200, &plan, &message)) << message.text;
  ASSERT_EQ(plan.launch_count, 3);
  EXPECT_EQ(unit(plan, 0), "forward_bf16");
  EXPECT_GE(plan.workspace_bytes, slabs + std::size_t{2} * 96 * 5 * 16 * 4);

  b.common.length = 32;  // one tile: starts from zero
  ASSERT_TRUE(plan_backward(b, kH200, &plan, &message)) << message.text;
  EXPECT_EQ(plan.launch_count, 2);
}

// Bytes that a backward which is given no states takes beyond those of one that is.
Index cost_of_states(Backward b) {
  device::Plan plan;
  device::Message message;
  EXPECT_TRUE(plan_backward(b, kH200, &plan, &message)) << message.text;
  const Index without = static_cast<Index>(plan.workspace_bytes);
  b.x = {};
  EXPECT_TRUE(plan_backward(b, kH200, &plan, &message)) << message.text;
  return static_cast<Index>(plan.workspace_bytes) - without;
}
TEST(Launch, StatesThatAreNotGivenCostNoMemoryWhereDuHasRoom) {
  alignas(16) static char du[16];
  Backward b = backward_of(problem(8, 2048, 2048, 16));
  const auto cost_at = [&](Index batch_stride, Index dim_stride, char* data) {
    b.du = {data, batch_stride, dim_stride};
    return cost_of_states(b);
  };
  const Index all = Index{8} * 2048 * 65 * 16 * 4, row = 2048;
  const Index saved_by_rounds = 20 << 20;  // at least
  EXPECT_LT(cost_at(2048 * row, row, du), -saved_by_rounds);
  EXPECT_LT(cost_at(row, 8 * row, du), -saved_by_rounds);
  EXPECT_EQ(cost_at(2048 * (row + 1), row + 1, du), 0);  // every second row at an odd place
  EXPECT_EQ(cost_at(row + 1, 8 * (row + 1), du), 0);
  EXPECT_EQ(cost_at(0, row, du), all);               // which overlap
  EXPECT_EQ(cost_at(2048 * row, row - 8, du), all);  // rows do
  EXPECT_EQ(cost_at(2047 * row, row, du), all);      // the last row and the next entry's first
  EXPECT_EQ(cost_at(2048 * row, row, du + 2), all);  // no place of a float
  b.common.states = 17;
  EXPECT_GE(cost_at(2048 * row, row, du), all);
  b.common = problem(8, 2048, 197, 16);
  EXPECT_EQ(cost_at(2048 * 197, 197, du), 0);
  b.common = problem(8, 2048, 2048, 16, 1, DType::F32);
  EXPECT_LT(cost_at(2048 * row, row, du), -saved_by_rounds);
  b.common = problem(1, 2048, 16384, 16);  // cut: both directions' ends of pieces
  EXPECT_LT(cost_at(0, 16384, du), Index{2048} * 513 * 16 * 4 / 8);
  b.common.length = 16385;
  EXPECT_GE(cost_at(0, 16385, du), Index{2048} * 513 * 16 * 4);
}
// Each round's carried gradients are in the workspace, wherever that is; the last steps come first.
TEST(Launch, ABackwardThatFindsItsStatesIsCutIntoRounds) {
  alignas(16) static char du[16], workspace[16];
  Backward b = backward_of(problem(8, 2048, 2040, 16));
  b.du = {du, 2048 * 2048, 2048}, b.x = {};
  device::Plan plan;
  device::Message message;
  ASSERT_TRUE(plan_backward(b, kH200, &plan, &message)) << message.text;
  ASSERT_EQ(plan.launch_count, 1 + 2 * kRounds);
  EXPECT_LE(plan.workspace_bytes, (std::size_t{8} << 20) + (std::size_t{3} << 20));
  device::set_workspace(plan, workspace);
  const void* carry = nullptr;
  for (int round = 0; round < kRounds; ++round) {
    BackwardArguments backward;
    ReduceArguments reduce;
    std::memcpy(&backward, plan.launches[1 + 2 * round].argument, sizeof backward);
    std::memcpy(&reduce, plan.launches[2 + 2 * round].argument, sizeof reduce);
    const Backward& part = backward.backward;
    const bool first = round == 0, last = round == kRounds - 1;
    const Index step = (kRounds - 1 - round) * Index{512};
    EXPECT_EQ(part.common.length, first ? 504 : 512);
    EXPECT_EQ(part.du.data, du + step * 2);
    EXPECT_EQ(part.common.initial_state.data == nullptr, last);
    EXPECT_EQ(part.dlast_state.data == nullptr, first);
    EXPECT_EQ(part.dinitial_state == nullptr, last);
    if (!first) {
      EXPECT_EQ(part.dlast_state.data, carry);
    }
    carry = part.dinitial_state;
    EXPECT_EQ(reduce.jobs[2].add, !first);  // dA
    EXPECT_FALSE(reduce.jobs[0].add);
    EXPECT_EQ(reduce.jobs[0].out_pitch, 2040);
    EXPECT_EQ(reduce.jobs[0].length, part.common.length);
  }
}

// Where the states cost no workspace, there may be none at all.
TEST(Launch, StatesInDuLeaveATinyBackwardWithoutWorkspace) {
  alignas(16) static float du[1];
  device::Plan plan;
  device::Message message;
  Backward b = backward_of(problem(1, 64, 64, 16));
  b.rounded_dB = b.dB, b.rounded_dC = b.dC, b.x = {}, b.du = {du, 0, 64};
  ASSERT_TRUE(plan_backward_as(b, {2, 8, 1, 1}, {2, 2, 1, 1}, &plan, &message)) << message.text;
  EXPECT_EQ(plan.launch_count, 2);
  EXPECT_EQ(plan.workspace_bytes, 0u);
  ASSERT_TRUE(plan_backward_as(b, {2, 8, 1, 1}, {2, 2, 2, 1}, &plan, &message)) << message.text;
  ASSERT_EQ(plan.launch_count, 4);  // the states' ends of pieces are in one
  EXPECT_GT(plan.workspace_bytes, 0u);
  BackwardArguments arguments;
  std::memcpy(&arguments, plan.launches[2].argument, sizeof arguments);
  EXPECT_FALSE(arguments.direct);
}

TEST(Launch, ATinyBackwardIsOneLaunchWithoutWorkspace) {
  device::Plan plan;
  device::Message message;
  Backward b = backward_of(problem(1, 64, 32, 16));
  b.rounded_dB = b.dB, b.rounded_dC = b.dC;
  ASSERT_TRUE(plan_backward(b, kH200, &plan, &message)) << message.text;
  EXPECT_EQ(plan.launch_count, 1);
  EXPECT_EQ(plan.workspace_bytes, 0u);
  BackwardArguments arguments;
  std::memcpy(&arguments, plan.launches[0].argument, sizeof arguments);
  EXPECT_TRUE(arguments.direct);

  b.rounded_dC = nullptr;  // fp32 sums of halves: the reduction's work
  ASSERT_TRUE(plan_backward(b, kH200, &plan, &message)) << message.text;
  EXPECT_EQ(plan.launch_count, 2);
  b.rounded_dC = b.dC;
  b.common.batch = 2;
  ASSERT_TRUE(plan_backward(b, kH200, &plan, &message)) << message.text;
  EXPECT_EQ(plan.launch_count, 2);
}

TEST(Launch, AChoiceIsRememberedForItsProblemAlone) {
  Choice first, again, other;
  const Common small = problem(1, 64, 32, 16), large = problem(1, 2048, 16384, 16);
  ASSERT_TRUE(choose_backward(small, kH200, &first));
  ASSERT_TRUE(choose_backward(large, kH200, &other));
  ASSERT_TRUE(choose_backward(small, kH200, &again));
  EXPECT_EQ(std::memcmp(&first, &again, sizeof first), 0);
  EXPECT_NE(std::memcmp(&first, &other, sizeof first), 0);
  const device::DeviceFacts half = {kH200.capability, kH200.multiprocessors / 8, kH200.shared_per_block,
                                    kH200.shared_per_multiprocessor};
  ASSERT_TRUE(choose_backward(large, half, &again));
  EXPECT_NE(again.segments, other.segments);
}

// 2048 channels are 256 warps of the backward, on 528 schedulers.
TEST(Launch, FewLongChannelsAreCutIntoSegments) {
  device::Plan plan;
  device::Message message;
  Forward f = {};
  f.common = problem(1, 2048, 16384, 16);
  ASSERT_TRUE(plan_forward(f, kH200, &plan, &message)) << message.text;
  ASSERT_EQ(plan.launch_count, 2);
  EXPECT_EQ(symbol(plan, 0), "scankit_forward_ends");
  ForwardArguments forward;
  std::memcpy(&forward, plan.launches[1].argument, sizeof forward);
  const Segments& s = forward.segments;
  EXPECT_GT(s.count, 4);
  EXPECT_GE(s.tiles * s.count, 512);
  EXPECT_EQ(s.tiles % s.tiles_per_piece, 0);
  EXPECT_EQ(plan.launches[1].grid_y, static_cast<unsigned>(s.count));

  Backward b = backward_of(f.common);
  b.x.data = nullptr;
  ASSERT_TRUE(plan_backward(b, kH200, &plan, &message)) << message.text;
  ASSERT_EQ(plan.launch_count, 5);
  const char* const units[] = {"forward_bf16", "forward_bf16", "backward_bf16", "backward_bf16", "reduce"};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(unit(plan, i), units[i]);
  ReduceArguments reduce;
  BackwardArguments backward;
  std::memcpy(&reduce, plan.launches[4].argument, sizeof reduce);
  std::memcpy(&backward, plan.launches[3].argument, sizeof backward);
  EXPECT_EQ(reduce.jobs[2].slabs, backward.segments.count);  // dA: one of each segment

  f.common = problem(8, 5120, 2048, 16);
  ASSERT_TRUE(plan_forward(f, kH200, &plan, &message)) << message.text;
  EXPECT_EQ(plan.launch_count, 1);
  f.common = problem(1, 64, 32, 16);
  ASSERT_TRUE(plan_forward(f, kH200, &plan, &message)) << message.text;
  EXPECT_EQ(plan.launch_count, 1);
}

TEST(Launch, AStepTakesAsManyLanesAsItsStatesNeed) {
  device::Plan plan;
  device::Message message;
  const char* const symbols[] = {"scankit_update_f32", "scankit_update_f16", "scankit_update_bf16"};
  for (int dtype = 0; dtype < 3; ++dtype) {
    Update u = {};
    u.batch = 3, u.dim = 100, u.states = 16, u.groups = 2, u.dtype = static_cast<DType>(dtype);
    ASSERT_TRUE(plan_update(u, kH200, &plan, &message)) << message.text;
    ASSERT_EQ(plan.launch_count, 1);
    EXPECT_EQ(unit(plan, 0), "update");
    EXPECT_EQ(symbol(plan, 0), symbols[dtype]);
    EXPECT_EQ(plan.launches[0].grid_x, 3u * 2);  // two lanes a channel: 64 channels a block
    EXPECT_EQ(plan.workspace_bytes, 0u);
    u.states = kMaxStates;
    ASSERT_TRUE(plan_update(u, kH200, &plan, &message)) << message.text;
    EXPECT_EQ(plan.launches[0].grid_x, 3u * 25);
    u.batch = 0;
    ASSERT_TRUE(plan_update(u, kH200, &plan, &message)) << message.text;
    EXPECT_EQ(plan.launch_count, 0);
    u.states = kMaxStates + 1;
    EXPECT_FALSE(plan_update(u, kH200, &plan, &message));
    EXPECT_NE(std::strstr(message.text, "257 states"), nullptr) << message.text;
  }
}

TEST(Launch, EmptyProblems) {
  device::Plan plan;
  device::Message message;
  Forward f = {};
  f.common = problem(0, 96, 100, 16);
  ASSERT_TRUE(plan_forward(f, kH200, &plan, &message)) << message.text;
  EXPECT_EQ(plan.launch_count, 0);
  f.common = problem(2, 96, 0, 16);  // the last state, zero, is still written
  ASSERT_TRUE(plan_forward(f, kH200, &plan, &message)) << message.text;
  EXPECT_EQ(plan.launch_count, 1);
  ASSERT_TRUE(plan_backward(backward_of(f.common), kH200, &plan, &message)) << message.text;
  ASSERT_EQ(plan.launch_count, 1);  // zeros for dA
  ReduceArguments arguments;
  ASSERT_EQ(plan.launches[0].argument_bytes, sizeof arguments);
  std::memcpy(&arguments, plan.launches[0].argument, sizeof arguments);
  for (const ReduceJob& job : arguments.jobs) EXPECT_EQ(job.slabs, 0);
}

TEST(Launch, WorkspacePointerIsTheFirstWord) {
  device::Plan plan;
  device::Message message;
  ASSERT_TRUE(plan_backward(backward_of(problem(1, 16, 40, 16)), kH200, &plan, &message));
  int memory = 0;
  device::set_workspace(plan, &memory);
  for (int i = 0; i < plan.launch_count; ++i) {
    void* first = nullptr;
    std::memcpy(&first, plan.launches[i].argument, sizeof first);
    EXPECT_EQ(first, &memory);
  }
}

TEST(Launch, RefusesWhatItCannotRun) {
  device::Plan plan;
  device::Message message;
  Forward f = {};
  f.common = problem(1, 16, 40, 257);
  EXPECT_FALSE(plan_forward(f, kH200, &plan, &message));
  EXPECT_NE(std::strstr(message.text, "257 states"), nullptr) << message.text;
  f.common = problem(1, 16, 40, 16, 3);
  EXPECT_FALSE(plan_forward(f, kH200, &plan, &message));
  f.common = problem(2000000000, 2000000000, 40, 16);
  EXPECT_FALSE(plan_forward(f, kH200, &plan, &message));
  EXPECT_NE(std::strstr(message.text, "split the batch"), nullptr) << message.text;
}

}  // namespace
}  // namespace scankit::selective_scan
