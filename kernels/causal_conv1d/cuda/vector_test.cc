// SPDX-License-Identifier: Apache-2.0
// The convolution's device code, through its plans, on the CPU (emulator.h) against its definition in double
// and against the CPU's kernels; and which kernels a plan takes.
#include "kernels/causal_conv1d/cuda/conv_trial_test.h"

namespace scankit::causal_conv1d {
namespace {

constexpr DType kTypes[] = {DType::F32, DType::F16, DType::BF16};

TEST(ConvKernels, AreRightForEveryLength) {
  std::vector<int> lengths(71);
  std::iota(lengths.begin(), lengths.end(), 0);
  for (const int more : {127, 128, 129, 136, 255, 256, 257, 258, 264, 513, 520, 1030, 1032})
    lengths.push_back(more);
  for (const int length : lengths) {
    Shape s;
    s.length = length, s.width = 2 + length % 3, s.states = length % 5 < 2, s.silu = length % 7 != 0;
    s.dtype = kTypes[length / 2 % 3], s.bias = length % 4 != 0;
    s.weight_dtype = length % 2 == 0 ? s.dtype : DType::F32;
    Trial(s).check();
  }
}

TEST(ConvKernels, AreRightForEveryWidthAndType) {
  for (const DType dtype : kTypes)
    for (const int width : {2, 3, 4})
      for (const int length : {8, 248, 264, 267})
        for (const bool silu : {false, true}) {
          Shape s;
          s.dtype = s.weight_dtype = dtype, s.width = width, s.length = length, s.silu = silu;
          s.states = length != 264;
          Trial(s, length != 8).check();
        }
}

TEST(ConvKernels, TakeRowsOfAnyStridesAndPackedOnes) {
  const Layout layouts[] = {{0, 8}, {8, 16}, {1, 0}, {4, 4}, {0, 1}, {0, 0, 2}, {1, 3, 3}, {0, 2, 1, true}};
  for (const Layout& in : layouts) {
    for (const Layout& out : {in, Layout{}}) {
      for (const bool packed : {false, true}) {
        Shape s;
        s.inputs = in, s.outputs = out, s.packed = packed, s.states = true, s.length = 296;
        Trial(s).check();
        s.dtype = DType::F32, s.width = 3, s.states = false, s.length = 140, s.dim = 3;
        Trial(s).check();
      }
    }
  }
}

TEST(ConvKernels, WalkAcrossBatches) {
  for (const int warp_tiles : {1, 2, 3, 4, 5, 9, 30}) {
    for (const int length : {16, 256, 264, 1032, 1031}) {
      Shape s;
      s.batch = 5, s.dim = 2, s.length = length, s.warp_tiles = warp_tiles, s.states = warp_tiles % 2 == 1;
      s.width = 2 + warp_tiles % 3;
      Trial(s).check();
      s.dtype = DType::F32, s.length = length / 2 / 4 * 4 + length % 2;
      Trial(s).check();
    }
  }
}

TEST(ConvKernels, WalkAlongPairsOfChannels) {
  const Layout last = {0, 0, 1, true}, far = {2, 4, 1, true};
  for (const DType dtype : kTypes) {
    for (const int length : {1, 2, 3, 7, 8, 9, 31, 32, 33, 63, 65, 100, 300}) {
      for (const int dim : {2, 62, 66}) {
        Shape s;
        s.dtype = dtype, s.length = length, s.dim = dim, s.inputs = dim == 62 ? far : last, s.outputs = last;
        s.width = 2 + (length + dim / 2) % 3, s.states = length % 2 == 1, s.weight_dtype = kTypes[length % 3];
        s.silu = length % 4 != 0, s.bias = length % 5 != 0;
        if (length >= 63) s.width = 4, s.silu = true;
        Trial(s).check();
      }
    }
  }
}

TEST(ConvKernels, AddToDweightAndDbias) {
  for (const int batch : {1, 40}) {
    Shape s;
    s.batch = batch;
    Trial once(s), twice(s);
    const Answers first = once.by_device();
    device::Plan plan = {};
    device::Message message;
    Backward b = once.backward();
    b.add = true;
    ASSERT_TRUE(plan_backward(b, &plan, &message));
    const selective_scan::Guarded workspace(plan.workspace_bytes, true);
    device::set_workspace(plan, workspace.data());
    for (int i = 0; i < plan.launch_count; ++i) emulate(plan.launches[i]);
    const Doubles dweight = once.dweight.get(), dbias = once.dbias.get();
    for (std::size_t i = 0; i < dweight.size(); ++i) EXPECT_EQ(dweight[i], 2 * first.dweight[i]);
    for (std::size_t i = 0; i < dbias.size(); ++i) EXPECT_EQ(dbias[i], 2 * first.dbias[i]);
  }
}

// Taps that a narrow filter lacks are not used, and nothing behind a row's end reaches a sum.
TEST(ConvKernels, KeepInfiniteInputsInTheirWindow) {
  for (const int length : {64, 61, 264, 261}) {
    for (const int width : {2, 3, 4}) {
      for (const int at : {length - 1, length - 3, 20}) {
        Shape s;
        s.batch = 1, s.dim = 1, s.length = length, s.width = width, s.silu = false;
        Trial trial(s);
        trial.vx[std::size_t(at)] = std::numeric_limits<double>::infinity();
        trial.x.set(trial.vx);
        const Answers got = trial.by_device();
        for (int t = 0; t < length; ++t)
          EXPECT_EQ(std::isfinite(got.out[std::size_t(t)]), t < at || t >= at + width) << t;
        for (const double v : got.dx) EXPECT_TRUE(std::isfinite(v));
        for (int k = 0; k < width; ++k)
          EXPECT_EQ(std::isfinite(got.dweight[std::size_t(k)]), at + width - 1 - k >= length) << k;
      }
    }
  }
}

std::string planned(const Shape& shape, bool of_backward) {
  const Trial trial(shape);
  device::Plan plan = {};
  device::Message message;
  EXPECT_TRUE(of_backward ? plan_backward(trial.backward(), &plan, &message)
                          : plan_forward(trial.forward(), &plan, &message));
  return kCudaKernels[plan.launches[0].kernel].symbol;
}

TEST(ConvPlan, TakesTheVectorKernelsWhereRowsAllowIt) {
  struct Row {
    const char* kernel;
    Shape shape;
  };
  const DType f32 = DType::F32, f16 = DType::F16;
  const Row rows[] = {
      {"usual", {}},
      {"usual", {.length = 4, .dtype = f32}},
      {"usual", {.length = 8, .dtype = f16}},
      {"usual", {.inputs = {8, 8}}},
      {"usual", {.dtype = f32, .inputs = {4, 4}, .outputs = {0, 12}}},
      {"whole", {.states = true}},
      {"whole", {.width = 3}},
      {"whole", {.silu = false}},
      {"single", {.length = 4}},
      {"single", {.length = 65}},
      {"single", {.length = 66, .dtype = f32}},
      {"single", {.inputs = {1, 7}}},
      {"single", {.inputs = {8, 4}}},
      {"single", {.outputs = {4, 0}}},
      {"single", {.outputs = {0, 4}}},
      {"by_step", {.packed = true}},
      {"by_step", {.inputs = {0, 0, 2}}},
      {"by_step", {.outputs = {0, 0, 2}}},
      {"by_step", {.length = 0}},
      {"pairs", {.inputs = {0, 0, 1, true}, .outputs = {0, 0, 1, true}}},
      {"pairs", {.dtype = DType::F32, .inputs = {2, 4, 1, true}, .outputs = {0, 2, 1, true}}},
      {"by_channel", {.dim = 3, .inputs = {0, 1, 1, true}, .outputs = {0, 1, 1, true}}},
      {"by_channel", {.inputs = {1, 0, 1, true}, .outputs = {0, 0, 1, true}}},
      {"by_channel", {.inputs = {0, 1, 1, true}, .outputs = {0, 0, 1, true}}},
      {"by_channel", {.inputs = {0, 0, 1, true}, .outputs = {0, 0, 1, false}}},
      {"by_channel", {.packed = true, .inputs = {0, 0, 1, true}, .outputs = {0, 0, 1, true}}},
      {"by_channel", {.length = 1, .inputs = {1}}},
      {"usual", {.batch = 1, .dim = 1, .inputs = {8, 1}}},  // strides that are not used
  };
  for (const Row& row : rows) {
    EXPECT_EQ(planned(row.shape, false), std::string("scankit_conv_forward_") + row.kernel)
        << text(row.shape);
    EXPECT_EQ(planned(row.shape, true), std::string("scankit_conv_backward_") + row.kernel)
        << text(row.shape);
  }
}

// A warp of the forward for whole pieces has two tiles and no more, of any tensor.
TEST(ConvPlan, LeavesNoTileOfAVeryLongRowOut) {
  constexpr int kMost = kMostParts * kWarps * kWholeTiles * 256;
  for (const int length : {1 << 20, 1 << 26, kMost, kMost + 8, 1 << 28, 1 << 30}) {
    alignas(16) static char place[16];
    Forward f = {};
    Common& c = f.common;
    c.batch = c.dim = 1, c.length = length, c.width = kMaxWidth, c.silu = true, c.dtype = DType::BF16;
    c.x = {place, 0, 0, 1}, f.out = {place, 0, 0, 1};
    device::Plan plan = {};
    device::Message message;
    ASSERT_TRUE(plan_forward(f, &plan, &message)) << message.text;
    ForwardVectorArguments arguments;
    std::memcpy(&arguments, plan.launches[0].argument, sizeof arguments);
    const std::string kernel = kCudaKernels[plan.launches[0].kernel].symbol;
    const Index warps = Index{plan.launches[0].grid_y} * plan.launches[0].block_x / 32;
    EXPECT_GE(warps * arguments.tiles.warp * 256, length) << kernel;
    EXPECT_EQ(kernel, arguments.tiles.warp > kWholeTiles ? "scankit_conv_forward_single"
                                                         : "scankit_conv_forward_usual");
    EXPECT_EQ(kernel == "scankit_conv_forward_usual", length <= kMost);
  }
}

}  // namespace
}  // namespace scankit::causal_conv1d
