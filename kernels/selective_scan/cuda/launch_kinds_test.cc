// SPDX-License-Identifier: Apache-2.0
// Which kernels run what is not a real A with a variable B and C, or has states beside the scan; and which launches
// overlap.
#include <map>

#include "kernels/selective_scan/cuda/launch_problem_test.h"

namespace scankit::selective_scan {
namespace {

// A kernel whose part no unit is compiled with would be missed at the first launch, on a GPU.
TEST(KernelTable, EachVariantIsInAUnitThatHasItsPart) {
  std::map<std::string, std::string> flags;
#define UNIT(name, defines) flags[#name] = defines " ";
#include "kernels/selective_scan/cuda/units.def"
#undef UNIT
  std::vector<std::string> parts;
#define ADD_PART(lanes, per, channels, sliced, threads, blocks, blocks32, busy, alone, options, part) \
  parts.push_back("-DSCANKIT_PART_" #part " ");
#define FORWARD_VARIANT(name, ...) ADD_PART(__VA_ARGS__)
#define BACKWARD_VARIANT(name, ...) ADD_PART(__VA_ARGS__)
#include "kernels/selective_scan/cuda/variants.def"
  ASSERT_EQ(static_cast<int>(parts.size()), kForwardVariantCount + kBackwardVariantCount);
  for (size_t i = 0; i < 3 * parts.size(); ++i) {
    const device::KernelName& kernel = kCudaKernels[i];
    const std::string& defines = flags[kernel.unit];
    EXPECT_NE(defines.find(parts[i / 3]), std::string::npos) << kernel.unit << " " << kernel.symbol;
    const char* const types[] = {"=F32 ", "=F16 ", "=BF16 "};
    EXPECT_NE(defines.find(types[i % 3]), std::string::npos) << kernel.unit << " " << kernel.symbol;
  }
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
  Backward b = backward_of(problem(1, 96, 100, 32));
  b.common.packed = {&ends, 500};
  ASSERT_TRUE(plan_backward(b, kH200, &plan, &message)) << message.text;
  ASSERT_EQ(plan.launch_count, 2);
  EXPECT_EQ(plan.launches[0].grid_x, 500u * 2);
  ReduceArguments arguments;
  std::memcpy(&arguments, plan.launches[1].argument, sizeof arguments);
  EXPECT_EQ(arguments.jobs[0].slabs, 2);  // dB: of two runs, each sequence in its own steps
  EXPECT_EQ(arguments.jobs[0].rows, 32);
  EXPECT_EQ(arguments.jobs[2].slabs, 500);  // dA

  b.common.packed.sequences = 0;
  b.common.length = 0;
  ASSERT_TRUE(plan_backward(b, kH200, &plan, &message)) << message.text;
  ASSERT_EQ(plan.launch_count, 1);  // zeros for dA
}

TEST(Launch, PackedSequencesOfUpTo16StatesHavePlainKernelsOfTheirOwn) {
  static float sink;
  static int ends;
  device::Plan plan;
  device::Message message;
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
    for (const int states : {1, 7, 16}) {
      Backward b = backward_of(problem(1, 96, 1000, states, 1, dtype));
      b.common.packed = {&ends, 5};
      b.common.initial_state = {&sink, 96 * states, states};
      b.dinitial_state = &sink;
      ASSERT_TRUE(plan_backward(b, kH200, &plan, &message)) << message.text;
      ASSERT_EQ(plan.launch_count, 2);
      EXPECT_EQ(symbol(plan, 0), "scankit_packed_backward");
      EXPECT_EQ(plan.launches[0].grid_x % 5, 0u);
      EXPECT_LE(plan.launches[0].shared_bytes, static_cast<unsigned>(kH200.shared_per_block));
      ReduceArguments reduce;
      std::memcpy(&reduce, plan.launches[1].argument, sizeof reduce);
      EXPECT_EQ(reduce.jobs[0].slabs * 5, plan.launches[0].grid_x);  // dB: of each tile of channels
      EXPECT_EQ(reduce.jobs[2].slabs, 5);                            // dA: of each sequence
      const std::size_t slabs = plan.workspace_bytes;
      b.x.data = nullptr;
      ASSERT_TRUE(plan_backward(b, kH200, &plan, &message)) << message.text;
      ASSERT_EQ(plan.launch_count, 3);
      EXPECT_EQ(symbol(plan, 0), "scankit_packed_forward");
      EXPECT_EQ(unit(plan, 0), std::string("packed_") + (dtype == DType::F32   ? "f32"
                                                         : dtype == DType::F16 ? "f16"
                                                                               : "bf16"));
      EXPECT_GE(plan.workspace_bytes,
                slabs + packed_chunks(1000, 5) * 96 * static_cast<std::size_t>(states) * 4);
    }
  }
}
// 48 KB of shared memory hold a block of both; nothing of what was reserved before is left where they do not.
TEST(Launch, PackedSequencesTakeTheGeneralKernelsWhereNoBlockFits) {
  static int ends;
  device::Plan plan;
  device::Message message;
  constexpr device::DeviceFacts kTiny = {90, 4, 13 << 10, 16 << 10};
  Backward b = backward_of(problem(1, 96, 1000, 16));
  b.common.packed = {&ends, 5};
  b.x.data = nullptr;
  ASSERT_TRUE(plan_backward(b, kPascal, &plan, &message)) << message.text;
  EXPECT_EQ(symbol(plan, 1), "scankit_packed_backward");
  ASSERT_TRUE(plan_backward(b, kTiny, &plan, &message)) << message.text;
  ASSERT_EQ(plan.launch_count, 3);
  EXPECT_EQ(symbol(plan, 0), "scankit_general_forward_real");
  EXPECT_EQ(symbol(plan, 1), "scankit_general_backward_real");
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

// What of a plan may begin while the launch before it ends (next_launch.cuh): the scan behind its ends, the
// reduction behind the scan, and never what other launches come before.
TEST(Launch, KernelsThatWaitThemselvesFollowClosely) {
  device::Plan plan;
  device::Message message;
  const auto follows = [&](const Backward& b) {
    EXPECT_TRUE(plan_backward(b, kH200, &plan, &message)) << message.text;
    std::string text;
    for (int i = 0; i < plan.launch_count; ++i)
      text += std::string(symbol(plan, i)).substr(8) + (plan.launches[i].follows ? "+ " : " ");
    return text;
  };
  Backward b = backward_of(problem(1, 2048, 16384, 16));
  EXPECT_EQ(follows(b), "backward_ends backward_1x16+ reduce+ ");
  b = backward_of(problem(8, 2048, 2048, 16));
  EXPECT_EQ(follows(b), "backward_1x16 reduce+ ");
  b.x.data = nullptr;
  EXPECT_EQ(follows(b), "forward_2x8 backward_1x16 reduce+ ");
  Forward f = {};
  f.common = problem(1, 2048, 16384, 16);
  ASSERT_TRUE(plan_forward(f, kH200, &plan, &message)) << message.text;
  ASSERT_EQ(plan.launch_count, 2);
  EXPECT_FALSE(plan.launches[0].follows);
  EXPECT_TRUE(plan.launches[1].follows);
}

}  // namespace
}  // namespace scankit::selective_scan
