// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/cuda/launch.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "kernels/selective_scan/cuda/arguments.h"
#include "kernels/selective_scan/cuda/choice.h"

namespace scankit::selective_scan {
namespace {

// But for a multiprocessor: of it nothing is measured (dispatch_table.def), so that choices are predicted.
constexpr device::DeviceFacts kH200 = {90, 131, 232448, 233472};
constexpr device::DeviceFacts kPascal = {61, 20, 49152, 98304};

Common problem(int batch, int dim, int length, int states, int groups = 1, DType dtype = DType::BF16) {
  Common c = {};
  c.batch = batch, c.dim = dim, c.length = length, c.states = states, c.groups = groups, c.dtype = dtype;
  return c;
}
Backward backward_of(const Common& common) {
  static float sink;
  Backward b = {};
  b.common = common;
  b.x.data = &sink;
  b.dA = b.dB = b.dC = &sink;
  return b;
}
std::string symbol(const device::Plan& plan, int launch) {
  return kCudaKernels[plan.launches[launch].kernel].symbol;
}
std::string unit(const device::Plan& plan, int launch) {
  return kCudaKernels[plan.launches[launch].kernel].unit;
}

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
  EXPECT_EQ(symbol(plan, 0), "scankit_backward_4x4");
  ASSERT_TRUE(plan_backward(b, kSmall, &plan, &message)) << message.text;
  EXPECT_EQ(symbol(plan, 0), "scankit_backward_4x4_straight");
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
  ASSERT_EQ(plan.launch_count, device::kMaxLaunches);
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

TEST(Launch, TheGeneralKernelsTakeWhatTheOthersDoNot) {
  static float sink;
  device::Plan plan;
  device::Message message;
  Forward f = {};
  f.common = problem(2, 96, 100, 16, 2, DType::F16);
  f.common.complex = true;
  ASSERT_TRUE(plan_forward(f, kH200, &plan, &message)) << message.text;
  EXPECT_EQ(unit(plan, 0), "general_f16");
  EXPECT_EQ(symbol(plan, 0), "scankit_general_forward_complex");
  EXPECT_EQ(plan.launches[0].grid_x, 2u * 2 * 3);

  for (const int states : {1, 16, kMaxStates}) {
    for (const bool complex : {false, true}) {
      if (!complex && states <= 16) continue;
      Backward b = backward_of(problem(2, 96, 100, states));
      b.common.complex = complex;
      b.common.constant_B.data = &sink;
      b.x.data = nullptr;
      ASSERT_TRUE(plan_backward(b, kPascal, &plan, &message)) << message.text;
      ASSERT_EQ(plan.launch_count, 3);
      EXPECT_EQ(symbol(plan, 1),
                complex ? "scankit_general_backward_complex" : "scankit_general_backward_real");
      for (int i = 0; i < plan.launch_count; ++i)
        EXPECT_LE(plan.launches[i].shared_bytes, static_cast<unsigned>(kPascal.shared_per_block));
    }
  }
}

TEST(Launch, AConstantBOrCHasPlainKernelsOfItsOwn) {
  static float sink;
  device::Plan plan;
  device::Message message;
  for (const int kind : {1, 2, 3}) {
    for (const int length : {100, 512}) {  // 512: cut
      Backward b = backward_of(problem(1, 9, length, 5));
      if (kind & 2) b.common.constant_B = {&sink, 5, 1};
      if (kind & 1) b.common.constant_C = {&sink, 5, 1};
      b.x.data = nullptr;
      ASSERT_TRUE(plan_backward(b, kH200, &plan, &message)) << message.text;
      const int ends = length == 512 ? 1 : 0;
      ASSERT_EQ(plan.launch_count, 3 + 2 * ends);
      EXPECT_EQ(symbol(plan, ends), "scankit_constant_forward");
      EXPECT_EQ(unit(plan, ends), "constant_bf16");
      EXPECT_EQ(symbol(plan, 1 + 2 * ends), "scankit_constant_backward");
      EXPECT_EQ(symbol(plan, 2 + 2 * ends), "scankit_reduce");
      ReduceArguments reduce;
      std::memcpy(&reduce, plan.launches[2 + 2 * ends].argument, sizeof reduce);
      for (const int which : {0, 1}) {  // dB, dC
        const bool constant = (kind & (which == 0 ? 2 : 1)) != 0;
        EXPECT_EQ(reduce.jobs[which].rows * reduce.jobs[which].length, constant ? 9 * 5 : 5 * length);
      }
      if (ends == 0) continue;
      EXPECT_EQ(symbol(plan, 0), kind & 2 ? "scankit_constant_forward_ends" : "scankit_forward_ends");
      EXPECT_EQ(symbol(plan, 2), kind & 1 ? "scankit_constant_backward_ends" : "scankit_backward_ends");
    }
  }
  // Beside a variable B and C of the same shape, whose choice is remembered too.
  Forward f = {};
  f.common = problem(8, 2048, 2048, 16);
  ASSERT_TRUE(plan_forward(f, kH200, &plan, &message)) << message.text;
  EXPECT_EQ(symbol(plan, 0), "scankit_forward_2x8");
  f.common.constant_C = {&sink, 16, 1};
  ASSERT_TRUE(plan_forward(f, kH200, &plan, &message)) << message.text;
  EXPECT_EQ(symbol(plan, 0), "scankit_constant_forward");
}

TEST(Launch, StatesBesideAPlainScanCostNoLaunch) {
  static float sink;
  device::Plan plan, bare;
  device::Message message;
  Forward f = {};
  f.common = problem(1, 96, 100, 16);
  ASSERT_TRUE(plan_forward(f, kH200, &bare, &message)) << message.text;
  f.common.initial_state = {&sink, 96 * 16, 16}, f.last_state = &sink;
  ASSERT_TRUE(plan_forward(f, kH200, &plan, &message)) << message.text;
  ASSERT_EQ(plan.launch_count, bare.launch_count);
  EXPECT_EQ(symbol(plan, 0), symbol(bare, 0));

  Backward b = backward_of(problem(1, 96, 100, 16));
  ASSERT_TRUE(plan_backward(b, kH200, &bare, &message)) << message.text;
  b.common.initial_state = f.common.initial_state, b.dlast_state = {&sink, 96 * 16, 16},
  b.dinitial_state = &sink;
  ASSERT_TRUE(plan_backward(b, kH200, &plan, &message)) << message.text;
  ASSERT_EQ(plan.launch_count, bare.launch_count);
  EXPECT_EQ(symbol(plan, 0), symbol(bare, 0));
  EXPECT_EQ(plan.workspace_bytes, bare.workspace_bytes);
}

TEST(Launch, StatesOfPackedSequencesAndOfTheOtherKindsGoToTheGeneralKernels) {
  static float sink;
  static int ends;
  device::Plan plan;
  device::Message message;
  for (int which = 0; which < 3; ++which) {
    Forward f = {};
    f.common = problem(1, 96, 100, 32);
    if (which != 1) f.common.constant_B = {&sink, 32, 1};
    if (which == 0) f.common.initial_state = {&sink, 96 * 32, 32};
    if (which == 1) f.common.packed = {&ends, 5};
    if (which == 2) f.last_state = &sink;
    ASSERT_TRUE(plan_forward(f, kH200, &plan, &message)) << message.text;
    ASSERT_EQ(plan.launch_count, 1);
    EXPECT_EQ(symbol(plan, 0), "scankit_general_forward_real");
    EXPECT_EQ(plan.launches[0].grid_x, which == 1 ? 5u * 6 : 6u);

    Backward b = backward_of(f.common);
    if (which == 2) b.dlast_state = {&sink, 96 * 32, 32};
    ASSERT_TRUE(plan_backward(b, kH200, &plan, &message)) << message.text;
    ASSERT_EQ(plan.launch_count, 2);
    EXPECT_EQ(symbol(plan, 0), "scankit_general_backward_real");
    const std::size_t slabs = plan.workspace_bytes;
    b.x.data = nullptr;
    ASSERT_TRUE(plan_backward(b, kH200, &plan, &message)) << message.text;
    ASSERT_EQ(plan.launch_count, 3);
    const std::size_t chunks = which == 1 ? 100 / 32 + 5 : 4 + 1;
    EXPECT_EQ(plan.workspace_bytes, slabs + chunks * 96 * 32 * 4);
  }
}

TEST(Launch, SumsOfPackedSequencesAreOverSequencesAndTheirRowsOverRuns) {
  static int ends;
  device::Plan plan;
  device::Message message;
  Backward b = backward_of(problem(1, 96, 100, 16));
  b.common.packed = {&ends, 500};
  ASSERT_TRUE(plan_backward(b, kH200, &plan, &message)) << message.text;
  ASSERT_EQ(plan.launch_count, 2);
  EXPECT_EQ(plan.launches[0].grid_x, 500u * 2);
  ReduceArguments arguments;
  std::memcpy(&arguments, plan.launches[1].argument, sizeof arguments);
  EXPECT_EQ(arguments.jobs[0].slabs, 2);  // dB: of two runs, each sequence in its own steps
  EXPECT_EQ(arguments.jobs[0].rows, 16);
  EXPECT_EQ(arguments.jobs[2].slabs, 500);  // dA

  b.common.packed.sequences = 0;
  b.common.length = 0;
  ASSERT_TRUE(plan_backward(b, kH200, &plan, &message)) << message.text;
  ASSERT_EQ(plan.launch_count, 1);  // zeros for dA
}

TEST(Launch, WithoutStepsTheGradientOfTheInitialStateIsStillWritten) {
  static float sink;
  device::Plan plan;
  device::Message message;
  Backward b = backward_of(problem(2, 96, 0, 16));
  b.common.initial_state = {&sink, 96 * 16, 16};
  b.dinitial_state = &sink;
  ASSERT_TRUE(plan_backward(b, kH200, &plan, &message)) << message.text;
  ASSERT_EQ(plan.launch_count, 2);
  EXPECT_EQ(symbol(plan, 0), "scankit_general_backward_real");
}

TEST(Launch, AConstantGradientWithoutWorkIsZeroAndOfItsOwnSize) {
  static float sink;
  device::Plan plan;
  device::Message message;
  Backward b = backward_of(problem(0, 96, 100, 16));
  b.common.complex = true;
  b.common.constant_B.data = &sink;
  ASSERT_TRUE(plan_backward(b, kH200, &plan, &message)) << message.text;
  ASSERT_EQ(plan.launch_count, 1);
  ReduceArguments arguments;
  std::memcpy(&arguments, plan.launches[0].argument, sizeof arguments);
  EXPECT_EQ(arguments.jobs[0].slabs, 0);
  EXPECT_EQ(arguments.jobs[0].rows * arguments.jobs[0].length, 96 * 16 * 2);
  EXPECT_EQ(arguments.jobs[1].rows, 0);  // dC: no batch
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
