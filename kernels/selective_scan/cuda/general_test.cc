// SPDX-License-Identifier: Apache-2.0
// The general kernels' device code, through the planner, on the CPU (emulator.h) against the fp64 oracle.
#include <string>

#define SCANKIT_EMULATED
#include "kernels/selective_scan/cuda/emulator.h"

namespace scankit::selective_scan {
alignas(16) static float memory[57 << 10];  // a block's shared memory, as the kernels declare it
}
#include "kernels/selective_scan/cuda/entry.cuh"
#include "kernels/selective_scan/cuda/general_trial_test.h"

namespace scankit::selective_scan {
namespace {

constexpr device::DeviceFacts kSmall = {90, 1, 49152, 65536};  // few runs: several channel tiles a block
constexpr device::DeviceFacts kLarge = {90, 132, 49152, 65536};

// e^(dt A) against double precision, from no angle to 10^6 radians of a step.
template <bool kExact>
double worst_decay() {
  double worst = 0;
  for (int i = 0; i < 200000; ++i) {
    const auto rate = static_cast<float>((i % 2 == 0 ? 1 : -1) * std::exp2(i % 4001 * 0.01 - 20));
    const float dt = 0.001f + static_cast<float>(i % 977) * 0.001f;
    const Number<true> a = decay<true, kExact>(dt, make_rate<true>({-0.25f, rate}));
    const double size = std::exp(-0.25 * dt), angle = static_cast<double>(dt) * rate;
    worst =
        std::max({worst, std::abs(a.re / size - std::cos(angle)), std::abs(a.im / size - std::sin(angle))});
  }
  return worst;
}
TEST(GeneralKernels, TurnByAnyAngle) {
  EXPECT_LT(worst_decay<true>(), 3e-7);
  EXPECT_LT(worst_decay<false>(), 4e-7);
  const float infinite = std::numeric_limits<float>::infinity();
  for (const float dt : {infinite, 1e30f}) {
    const Number<true> gone = decay<true, true>(dt, make_rate<true>({-1.0f, 3.0f}));
    EXPECT_EQ(gone.re, 0.0f);
    EXPECT_EQ(gone.im, 0.0f);
  }
  const Number<true> real = decay<true, true>(0.5f, make_rate<true>({-1.0f, 0.0f}));
  EXPECT_FLOAT_EQ(real.re, std::exp(-0.5f));
  EXPECT_EQ(real.im, 0.0f);
  EXPECT_TRUE(std::isnan(decay<true, true>(NAN, make_rate<true>({-1.0f, 3.0f})).re));
}

// What the fast kernels do not take; stateless.
TEST(GeneralKernels, AreRightInEveryKind) {
  for (int kind = 1; kind < 8; ++kind) {
    SCOPED_TRACE(kind);
    Trial({kind, 1, 10, 34, 3, (kind & 2) != 0 ? 1 : 2, kind % 2 == 1}).check(kLarge, kind == 4);
  }
}
TEST(GeneralKernels, AreRightWhereABlockTakesSeveralTilesOfChannels) {
  Trial({4, 3, 34, 33, 3, 2, true}).check(kSmall);
}
TEST(GeneralKernels, AreRightForEveryRest) {
  for (const int states : {1, 7, 8, 9, 15, 16, 17, 25}) {
    for (const DType dtype : {DType::F32, DType::BF16}) {
      SCOPED_TRACE(states);
      Shape shape{states % 2 == 0 ? 4 : 4 + states % 4, 2, 1 + states, 41, states, 1, true, dtype};
      shape.dense = dtype == DType::F32;
      Trial(shape, states > 8).check(kLarge, states % 3 == 0);
    }
  }
}
TEST(GeneralKernels, AreRightAtTheEdges) {
  Trial({7, 1, 1, 1, 1, 1, true}).check(kLarge, true);
  Trial({4, 1, 8, 32, 16, 1, false}).check(kLarge, true);
  Trial({5, 1, 2, 31, 33, 1, true}).check(kLarge);
}

TEST(GeneralKernels, StartFromAStateAndTakeTheLastOnesGradientInEveryKind) {
  for (int kind = 0; kind < 8; ++kind) {
    SCOPED_TRACE(kind);
    Shape shape{kind, 2, 5, 34, 3, 1, kind % 2 == 1};
    shape.initial = shape.last = true;
    Trial(shape).check(kLarge, kind % 3 == 0);
  }
}
TEST(GeneralKernels, TakeEachStateByItself) {
  for (const int kind : {0, 1}) {
    for (const bool initial : {false, true}) {
      Shape shape{kind, 1, 5, 70, 17, 1, true};
      shape.initial = initial, shape.last = !initial;
      Trial(shape).check(kLarge, true);
      Trial(shape).check(kLarge, true, false);  // x is not wanted
    }
  }
}
// Kind 0 without packed sequences is the plain kernels'.
TEST(PlainKernels, TakeStatesInEverySliceAndType) {
  for (const int states : {1, 4, 7, 16, 33, 70}) {
    for (const DType dtype : {DType::F32, DType::BF16}) {
      SCOPED_TRACE(states);
      Shape shape{0, 2, 5, 97, states, 1, states % 2 == 1, dtype};
      shape.initial = shape.last = true;
      Trial(shape, states != 7).check(kLarge, true);
    }
  }
}
// Where shared memory has room the planner takes the forward with wide slices for the many.
TEST(PlainKernels, TakeOneStateAndManyInHalfWords) {
  constexpr device::DeviceFacts kRoom = {90, 131, 232448, 233472};
  for (const int states : {1, 100}) {
    for (const int length : {97, 104, 76, 160}) {  // odd, 16-byte, 8-byte places
      SCOPED_TRACE(std::to_string(states) + " states, length " + std::to_string(length));
      Shape shape{0, 2, 6, length, states, 2, true, DType::BF16};
      shape.initial = shape.last = length != 76;
      Trial(shape, length != 104).check(kRoom, length != 160);
    }
  }
}
TEST(GeneralKernels, HandTheStateThroughWhereThereAreNoSteps) {
  for (const int kind : {0, 7}) {
    Shape shape{kind, 2, 3, 0, 5, 1, true};
    shape.initial = shape.last = true;
    Trial(shape).check(kLarge, true);
    shape.batch = 1, shape.cu_seqlens = {0, 0, 0};
    Trial(shape).check(kLarge, true);
  }
}

const std::vector<int> kLengths = {0, 0, 5, 38, 39, 39, 71, 71};  // empty ones, odd ones, several tiles

TEST(GeneralKernels, TakePackedSequencesOfEveryKind) {
  for (int kind = 0; kind < 8; ++kind) {
    SCOPED_TRACE(kind);
    Shape shape{kind, 1, 4, 71, 3, (kind & 2) != 0 ? 1 : 2, kind % 2 == 1};
    shape.cu_seqlens = kLengths;
    shape.initial = kind % 3 != 1, shape.last = kind % 3 != 2;
    Trial(shape).check(kLarge, kind % 3 == 0);
  }
}
TEST(GeneralKernels, TakePackedSequencesAtOddPlacesOfHalfWords) {
  for (const int kind : {0, 4}) {
    Shape shape{kind, 1, 2, 71, 2, 1, true, DType::BF16};
    shape.initial = shape.last = true, shape.cu_seqlens = {0, 1, 34, 71};
    for (const bool at_end : {false, true}) Trial(shape, at_end).check(kLarge, true);
  }
}
TEST(GeneralKernels, TakePackedSequencesWhereABlockTakesSeveralTilesOfChannels) {
  Shape shape{0, 1, 34, 40, 3, 2, true};
  shape.initial = shape.last = true, shape.cu_seqlens = {0, 3, 40};
  Trial(shape).check(kSmall);
}
// By the plain kernels: rows of whole vectors, of 8-byte places and of odd ones in one call, and blocks of
// several warps.
TEST(PackedKernels, AreRightWhereverSequencesBegin) {
  constexpr device::DeviceFacts kRoom = {90, 1, 232448, 233472};
  const std::vector<int> cuts[] = {
      {0, 32, 64, 128}, {0, 4, 40, 72, 72, 128}, {0, 33, 63, 128}, {0, 128}, {0, 96, 100, 128}};
  for (const std::vector<int>& ends : cuts) {
    for (const DType dtype : {DType::F32, DType::BF16}) {
      for (const int states : {16, 5}) {
        SCOPED_TRACE(std::to_string(ends[1]) + " first, " + std::to_string(states) + " states");
        Shape shape{0, 1, states == 16 ? 35 : 10, 128, states, states == 16 ? 1 : 2, true, dtype};
        shape.cu_seqlens = ends, shape.dense = true;
        shape.initial = shape.last = states == 16 || ends.size() > 2;
        Trial(shape).check(states == 16 ? kRoom : kLarge, states == 5);
      }
    }
  }
}

// What a caller could only have seen by waiting for the device.
TEST(GeneralKernels, StayInBoundsWhateverCuSeqlensHolds) {
  constexpr int kLow = -2147483647 - 1, kHigh = 2147483647;
  const std::vector<int> garbage[] = {
      {7, -3, 1000000, 2, kLow, kHigh, 5}, {kHigh, kLow, kHigh}, {40, 40, 40}, {-1, 41}, {39, 0, 39, 0, 40}};
  for (const std::vector<int>& values : garbage) {
    for (const bool at_end : {false, true}) {
      Shape shape{at_end ? 4 : 0, 1, 2, 40, 2, 1, true};
      shape.initial = shape.last = true, shape.cu_seqlens = values;
      Trial(shape, at_end).run_unjudged(kLarge);
      shape.dtype = DType::BF16, shape.dense = true;
      Trial(shape, at_end).run_unjudged(kLarge);
    }
  }
}

}  // namespace
}  // namespace scankit::selective_scan
