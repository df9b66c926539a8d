// SPDX-License-Identifier: Apache-2.0
// The general kernels' device code, through the planner, on the CPU (emulator.h) against the fp64 oracle.
#define SCANKIT_EMULATED
#include "kernels/selective_scan/cuda/emulator.h"

namespace scankit::selective_scan {
alignas(16) static float memory[16384];  // a block's shared memory, as the kernels declare it
}
#include "kernels/selective_scan/cuda/entry.cuh"
#include "kernels/selective_scan/cuda/general_trial_test.h"

namespace scankit::selective_scan {
namespace {

constexpr device::DeviceFacts kSmall = {90, 1, 49152, 65536};  // few runs: several channel tiles a block
constexpr device::DeviceFacts kLarge = {90, 132, 49152, 65536};

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
    }
  }
}

}  // namespace
}  // namespace scankit::selective_scan
