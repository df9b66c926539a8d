// SPDX-License-Identifier: Apache-2.0
// The kernels for a constant B or C, through the planner, on the CPU (emulator.h) against the fp64 oracle.
#define SCANKIT_EMULATED
#include "kernels/selective_scan/cuda/emulator.h"

namespace scankit::selective_scan {
alignas(16) static float memory[57 << 10];  // a block's shared memory, as the kernels declare it
}
#include "kernels/selective_scan/cuda/entry.cuh"
#include "kernels/selective_scan/cuda/general_trial_test.h"

namespace scankit::selective_scan {
namespace {

constexpr device::DeviceFacts kH200 = {90, 132, 232448, 233472};
constexpr device::DeviceFacts kOne = {90, 1, 232448, 233472};  // nothing is cut, blocks are large

const int kKinds[] = {1, 2, 3};  // constant C, B, both

TEST(ConstantKernels, AreRightForEveryCountOfStates) {
  for (int states = 1; states <= 17; ++states) {
    SCOPED_TRACE(states);
    const int kind = kKinds[states % 3];
    Shape shape{
        kind, 2, 5, 35 + states, states, 1, states % 2 == 0, states % 4 < 2 ? DType::F32 : DType::BF16};
    Trial(shape, states % 3 == 0).check(kH200, states % 5 == 0);
  }
}
// Rows of whole vectors, of 8-byte places, and of odd ones; the kernel reads ahead in two of them.
TEST(ConstantKernels, AreRightHoweverRowsStart) {
  for (const int kind : kKinds) {
    for (const int length : {96, 68, 71}) {
      for (const DType dtype : {DType::F32, DType::BF16}) {
        SCOPED_TRACE(kind * 1000 + length);
        Shape shape{kind, 2, 11, length, 16, 1, true, dtype};
        shape.dense = true;
        Trial(shape, length == 71).check(kH200, length == 68);
      }
    }
  }
}
TEST(ConstantKernels, AreRightInLargeBlocks) {
  for (const int kind : kKinds) {
    for (const DType dtype : {DType::F32, DType::BF16}) {
      SCOPED_TRACE(kind);
      Shape shape{kind, 1, 70, 40, 13, 1, true, dtype};
      shape.dense = true;
      Trial(shape).check(kOne);
    }
  }
}
TEST(ConstantKernels, TakeStatesAndGroups) {
  for (const int kind : kKinds) {
    for (const DType dtype : {DType::F32, DType::BF16}) {
      SCOPED_TRACE(kind);
      Shape shape{kind, 2, 6, 65, 7, kind == 1 ? 2 : 1, kind == 1, dtype};
      shape.initial = shape.last = true;
      Trial(shape).check(kH200, true);
      Trial(shape).check(kH200, true, false);
    }
  }
}
TEST(ConstantKernels, AreRightAtTheEdges) {
  for (const int kind : kKinds) {
    SCOPED_TRACE(kind);
    for (const int length : {1, 3, 32, 33}) Trial({kind, 1, 1, length, 16, 1, false}).check(kH200, true);
    Shape none{kind, 2, 3, 0, 5, 1, true};
    none.initial = none.last = true;
    Trial(none).check(kH200, true);
  }
}
// launch_test.cc says that these are cut.
TEST(ConstantKernels, AreRightInSegments) {
  for (const int kind : kKinds) {
    for (const DType dtype : {DType::F32, DType::BF16}) {
      SCOPED_TRACE(kind);
      Shape shape{kind, 1, 9, kind == 3 ? 515 : 512, 16, 1, true, dtype};
      shape.initial = shape.last = shape.dense = true;
      Trial(shape).check(kH200, true);
    }
  }
}

}  // namespace
}  // namespace scankit::selective_scan
