// SPDX-License-Identifier: Apache-2.0
// The backward that loops over more than 16 states in slices (state_slices.cuh), for bf16, on the CPU
// (emulator.h): near the fp64 oracle, and the same bits however late or early the copies happen.
#include <gtest/gtest.h>

#include <string>

#include "kernels/selective_scan/cuda/emulated_bf16_test.h"
//
#include "kernels/selective_scan/cuda/guarded_trial_test.h"

namespace scankit::selective_scan {
namespace {

using emulator::Block;

// The first forward that takes slices.
Choice forward() {
  for (int v = 0; v < kForwardVariantCount; ++v)
    if (kForwardVariants[v].sliced) return {v, 4, 1, 1};
  return {-1, 0, 1, 1};
}
bool is_loop(const Variant& v) { return v.sliced && (v.halves || v.odd); }

bool is_odd(const Shape& shape) { return shape.length % 4 != 0 || shape.pad % 4 != 0; }

void check(Shape shape) {
  Trial trial(shape, forward());
  int count = 0;
  for (int v = 0; v < kBackwardVariantCount; ++v) {
    const Variant& variant = kBackwardVariants[v];
    if (!is_loop(variant) || (variant.halves && is_odd(shape)) || shape.warps < variant.fewest_warps ||
        shape.warps > variant.most_warps)
      continue;
    ++count;
    SCOPED_TRACE("team of " + std::to_string(variant.team) + ", " + std::to_string(shape.states) +
                 " states, length " + std::to_string(shape.length) + ", warps " +
                 std::to_string(shape.warps));
    const Choice choice = {v, shape.warps, 1, 1};
    Block::copies() = Block::kLate;
    const Trial::Results late = trial.backward(choice, shape.saved);
    trial.judge(late);
    Block::copies() = Block::kAtOnce;
    EXPECT_EQ(differences(trial.backward(choice, shape.saved), late), "");
  }
  EXPECT_GE(count, 1);
  Block::copies() = Block::kLate;
}

// A slice that is full, that has one state, four and five; a round that is full, and one that is not.
TEST(StateSlices, AreRightForEveryCountOfStates) {
  for (const int states : {17, 20, 21, 32, 33, 48, 64, 65, 100, 128, 256})
    check({.batch = 1, .dim = 9, .length = 72, .states = states, .warps = 4});
}
// One tile, and less; copies of 8 and of 16 bytes; rows with pads.
TEST(StateSlices, AreRightForEveryLength) {
  for (const int length : {4, 8, 28, 32, 36, 64, 100, 136}) {
    check({.batch = 1, .dim = 5, .length = length, .states = 40, .warps = 4});
    check({.batch = 2, .dim = 3, .length = length, .states = 72, .warps = 4, .gated = false, .pad = 4});
  }
}
// Rows that start anywhere: by the variants that are for them, which take the others, too.
TEST(StateSlices, AreRightForRowsAtOddPlaces) {
  for (const int length : {1, 3, 7, 9, 31, 33, 35, 65, 70, 101}) {
    check({.batch = 2, .dim = 9, .length = length, .states = 72, .warps = 4});
    check({.batch = 1, .dim = 5, .length = length, .states = 33, .warps = 8, .gated = false, .pad = 3});
  }
  check({.batch = 2,
         .dim = 18,
         .length = 99,
         .states = 66,
         .groups = 2,
         .warps = 4,
         .saved = false,
         .stateful = true});
}
TEST(StateSlices, AreRightInEveryBlock) {
  for (const int warps : {1, 2, 4, 8, 16}) {
    for (const int dim : {warps * 8 - 3, warps * 8 + 1, warps * 2 + 1})
      check({.batch = 1, .dim = dim, .length = 68, .states = 68, .warps = warps});
  }
}
TEST(StateSlices, AreRightWithGivenStatesGroupsAndNoneSaved) {
  for (const bool saved : {false, true}) {
    for (const bool stateful : {false, true}) {
      for (const int length : {32, 96, 132})
        check({.batch = 2,
               .dim = 18,
               .length = length,
               .states = 66,
               .groups = 2,
               .warps = 4,
               .saved = saved,
               .stateful = stateful});
      check({.batch = 2,
             .dim = 10,
             .length = 64,
             .states = 35,
             .warps = 8,
             .saved = saved,
             .stateful = stateful,
             .by_dim = false});
    }
  }
}

TEST(StateSlices, FindCopiesThatNobodyWaitsFor) {
  const Shape shape = {.batch = 1, .dim = 9, .length = 100, .states = 80, .warps = 8};
  Trial trial(shape, forward());
  for (int v = 0; v < kBackwardVariantCount; ++v) {
    if (!kBackwardVariants[v].sliced || !kBackwardVariants[v].halves) continue;
    const Trial::Results want = trial.backward({v, shape.warps, 1, 1}, true);
    Block::copies() = Block::kNever;
    EXPECT_EQ(differences(trial.backward({v, shape.warps, 1, 1}, true), want),
              "dA dB dC dD ddelta ddelta_bias du dz out_z ");
    Block::copies() = Block::kLate;
  }
}

}  // namespace
}  // namespace scankit::selective_scan
