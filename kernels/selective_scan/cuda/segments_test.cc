// SPDX-License-Identifier: Apache-2.0
// The plain kernels over a length cut into segments: their device code, through the planner, on the CPU
// (emulator.h) against the fp64 oracle.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#define SCANKIT_EMULATED
#include "kernels/selective_scan/cuda/emulator.h"

#define SCANKIT_FORWARD
#define SCANKIT_BACKWARD
#define SCANKIT_REDUCE
#define SCANKIT_DTYPE F32
namespace scankit::selective_scan {
alignas(16) static float memory[57 << 10];  // a block's shared memory, as the kernels declare it
}
#include "kernels/selective_scan/cuda/entry.cuh"
//
#include "kernels/selective_scan/cuda/plain_trial_test.h"

namespace scankit::selective_scan {
namespace {

int variant_of(const Variant* variants, int count, int lanes, int states) {
  for (int i = 0; i < count; ++i)
    if (!variants[i].sliced && variants[i].lanes == lanes &&
        variants[i].lanes * variants[i].per_lane >= states)
      return i;
  return -1;
}
Choice forward_in(int lanes, int states, int segments, int pieces) {
  const int v = variant_of(kForwardVariants, kForwardVariantCount, lanes, states);
  return {v, kForwardVariants[v].fewest_warps, segments, pieces};
}
Choice backward_in(int lanes, int states, int segments, int pieces) {
  return {variant_of(kBackwardVariants, kBackwardVariantCount, lanes, states), 1, segments, pieces};
}

TEST(Segments, AreRightInEveryVariantOf16States) {
  for (const int lanes : {4, 8, 16}) {
    SCOPED_TRACE(lanes);
    const int other = lanes == 16 ? 4 : lanes;
    Trial({1, 5, 290, 16, 1}).check(forward_in(lanes, 16, 3, 2), backward_in(other, 16, 4, 2), lanes == 8);
  }
}
// Candidates of the tuner too; the sliced ones are slices_test.cc's, those for rows of certain places
// async_test.cc's and kept_states_test.cc's.
TEST(Segments, AreRightInEveryVariant) {
  const Variant *f = kForwardVariants, *b = kBackwardVariants;
  const int forwards = kForwardVariantCount, backwards = kBackwardVariantCount;
  for (int i = 0; i < forwards || i < backwards; ++i) {
    const int v = i < forwards ? i : 0, w = i < backwards ? i : 0;
    if (f[v].sliced && b[w].sliced) continue;
    SCOPED_TRACE("forward variant " + std::to_string(v) + ", backward variant " + std::to_string(w));
    const auto states_of = [](const Variant& variant) {
      return variant.sliced ? 16 : variant.lanes * variant.per_lane;
    };
    for (const int states : {states_of(f[v]), states_of(b[w])}) {
      const auto usable = [&](const Variant& variant) {
        return !variant.sliced && !variant.halves && !variant.odd && states_of(variant) >= states;
      };
      const Choice forward = usable(f[v]) ? Choice{v, f[v].fewest_warps, 2, 1} : forward_in(4, states, 1, 1);
      const Choice backward =
          usable(b[w]) ? Choice{w, b[w].fewest_warps, 2, 1} : backward_in(4, states, 1, 1);
      Trial({1, 37, 131, states, 1, true}).check(forward, backward, true);
      Trial({1, 32, 136, states, 1}).check(forward, backward, true);  // whole pieces, read as vectors
    }
  }
}
// Fewer steps than a quad, one tile and a step more, several groups, all warps of a block, no z, no states.
TEST(Segments, EveryBackwardVariantTakesShortAndUngatedSequences) {
  for (int v = 0; v < kBackwardVariantCount; ++v) {
    const Variant& variant = kBackwardVariants[v];
    if (variant.sliced || variant.halves || variant.odd) continue;
    SCOPED_TRACE("backward variant " + std::to_string(v));
    const int states = variant.lanes * variant.per_lane;
    const auto check = [&](Shape shape, int warps, bool with_x) {
      shape.gated = false;
      Trial(shape).check(forward_in(4, states, 1, 1), Choice{v, warps, 1, 1}, with_x);
    };
    check({1, 3, 3, states, 1}, 1, true);
    check({2, 6, 33, states, 2}, 2, true);
    check({1, variant.most_warps * variant.warp_channels + 1, 65, states, 1}, variant.most_warps, false);
  }
}
// Lanes over steps (step_lanes.cuh): more tiles than are summed up between two barriers, channels that no
// lane has.
TEST(Segments, FewStatesAreRightForEveryLength) {
  for (int v = 0; v < kBackwardVariantCount; ++v) {
    const Variant& backward = kBackwardVariants[v];
    for (int f = 0; f < kForwardVariantCount; ++f) {
      const Variant& forward = kForwardVariants[f];
      const int states = backward.per_lane;
      if (backward.lanes != 1 || forward.lanes != 1 || forward.per_lane < states) continue;
      SCOPED_TRACE("forward variant " + std::to_string(f) + ", backward variant " + std::to_string(v));
      for (const int length : {1, 7, 8, 31, 33, 64, 97, 136, 419}) {
        SCOPED_TRACE(length);
        for (const int warps : {1, 2, 4}) {
          const Choice first = {f, std::max(warps, forward.fewest_warps), 1, 1}, second = {v, warps, 1, 1};
          Trial({1, 3, length, states, 1, true}).check(first, second, true);
          Trial({2, 14, length, states, 2, false, warps == 2}).check(first, second, warps != 1);
        }
        if (length < 97) continue;
        Trial({1, 1, length, 1, 1}).check({f, 2, 3, 2}, {v, 2, 5, 1}, length % 2 == 0);
        Trial({1, 71, length, states, 1, true}).check({f, 4, 2, 2}, {v, 4, 2, 2}, true);
      }
    }
  }
}
TEST(Segments, AreRightForFewStatesAndSeveralGroups) {
  Trial({2, 6, 200, 3, 2}).check(forward_in(2, 3, 2, 1), backward_in(2, 3, 6, 1), true);
  Trial({1, 18, 131, 7, 1}).check(forward_in(2, 7, 2, 2), backward_in(2, 7, 2, 2), false);
}
TEST(Segments, MayBeMoreThanTheLengthHas) {
  Trial({1, 5, 97, 16, 1}).check(forward_in(4, 16, 32, 2), backward_in(8, 16, 32, 2), true);
}

TEST(Segments, StartFromAStateAndTakeTheLastOnesGradient) {
  for (const bool with_x : {false, true}) {
    for (const int segments : {1, 3}) {
      SCOPED_TRACE(segments);
      Trial({2, 5, 290, 16, 1, true})
          .check(forward_in(4, 16, segments, 2), backward_in(8, 16, segments, 2), with_x);
      Trial({1, 6, 131, 3, 2, true})
          .check(forward_in(2, 3, segments, 1), backward_in(2, 3, segments, 1), with_x);
    }
    Trial({1, 3, 129, 16, 1, true}).check(forward_in(16, 16, 1, 1), backward_in(4, 16, 1, 1), with_x);
  }
}

// What softplus is made of, in units of its value.
TEST(Segments, Log1pOfTheUnitInterval) {
  double worst = 0, worst_exact = 0;
  for (int i = 1; i <= 1000000; ++i) {
    const float e = static_cast<float>(i) * 1e-6f;
    const double want = std::log1p(static_cast<double>(e));
    worst = std::max(worst, std::abs(log1p_unit<false>(e) - want) / want);
    worst_exact = std::max(worst_exact, std::abs(log1p_unit<true>(e) - want) / want);
  }
  EXPECT_LT(worst, 1.5e-6);
  EXPECT_LT(worst_exact, 2.2e-7);
  for (const float small : {1e-38f, 1e-20f, 1e-8f}) EXPECT_NEAR(log1p_unit<true>(small) / small, 1.0f, 2e-7f);
  EXPECT_EQ(log1p_unit<false>(0.0f), 0.0f);
  EXPECT_EQ(log1p_unit<true>(0.0f), 0.0f);
  EXPECT_TRUE(std::isnan(log1p_unit<true>(std::numeric_limits<float>::quiet_NaN())));
}

// All channels of a group in one block, and one batch entry: no slabs, no reduction; an odd length, too.
TEST(Segments, OneSlabOfEachIsTheGradientItself) {
  for (const Shape& shape : {Shape{1, 8, 45, 16, 1}, Shape{1, 8, 64, 13, 2}, Shape{1, 3, 131, 16, 1, true}}) {
    SCOPED_TRACE(shape.length);
    Trial trial(shape);
    trial.check(forward_in(4, 16, 1, 1), backward_in(4, 16, 1, 1), true);
    EXPECT_EQ(trial.last_launches, 1);
  }
  Trial two({2, 8, 45, 16, 1});
  two.check(forward_in(4, 16, 1, 1), backward_in(4, 16, 1, 1), true);
  EXPECT_EQ(two.last_launches, 2);
}

// exp(A dt) of a piece overflows where nothing has entered it: zero stays zero.
TEST(Segments, AGrowingFactorMeetsAZero) {
  for (const int lanes : {1, 4}) {
    const int states = lanes * lanes;
    for (const int segments : {1, 3}) {
      Trial trial({1, 2, 192, states, 1}, 4, 5);
      std::fill(trial.p.u.begin(), trial.p.u.end(), 0.0);
      std::fill(trial.p.dout.begin(), trial.p.dout.end(), 0.0);
      std::fill(trial.p.delta.begin(), trial.p.delta.end(), 1.0);
      trial.check(forward_in(lanes, states, segments, 1), backward_in(lanes, states, segments, 1), true);
    }
  }
}
// A factor of 2^-300 or 2^250 alone is none that fp32 holds, the product is.
TEST(Segments, AFactorBeyondFp32) {
  EXPECT_FLOAT_EQ(pass_piece(std::ldexp(1.0f, -120), 245, 0), std::ldexp(1.0f, 125));
  EXPECT_EQ(pass_piece(0, std::numeric_limits<float>::infinity(), 3), 3);
  EXPECT_EQ(pass_piece(std::numeric_limits<float>::infinity(), -1000, 0),
            std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(pass_piece(1, NAN, 0)));
  EXPECT_TRUE(std::isnan(pass_piece(NAN, -1, 0)));
}

}  // namespace
}  // namespace scankit::selective_scan
