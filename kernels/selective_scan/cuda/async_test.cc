// SPDX-License-Identifier: Apache-2.0
// The backward that asks for a tile's rows, B, C and states while it computes the one after it (option
// Async), for bf16, on the CPU (emulator.h): the same bits as the kernel that reads them when it needs them,
// however late or early the copies happen, and near the fp64 oracle.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/selective_scan/cuda/emulated_bf16_test.h"
//
#include "kernels/selective_scan/cuda/guarded_trial_test.h"

namespace scankit::selective_scan {
namespace {

using emulator::Block;

constexpr Choice kForward = {2, 2, 1, 1};  // 4x4

int variant_named(const std::string& name) {
  int i = 0;
#define FORWARD_VARIANT(...)
#define BACKWARD_VARIANT(each, ...) \
  if (name == #each) return i;      \
  ++i;
#include "kernels/selective_scan/cuda/variants.def"
  return -1;
}
Trial::Results backward(Trial& trial, const Shape& shape, const char* variant) {
  return trial.backward({variant_named(variant), shape.warps, shape.segments, 2}, shape.saved);
}

// The kernels that loop over the states sum in another order: near the reference, and the same bits however
// the copies happen.
void check_state_loops(const Shape& shape) {
  Trial trial(shape, kForward);
  Trial::Results first;
  for (const char* variant : {"1x16", "1x16x2", "1x16_odd"}) {
    const Variant& v = kBackwardVariants[variant_named(variant)];
    const bool places = shape.length % 4 == 0 && shape.pad % 4 == 0;
    if ((v.halves && !places) || shape.states <= 8 || shape.warps > v.most_warps) continue;
    SCOPED_TRACE(variant);
    Block::copies() = Block::kLate;
    const Trial::Results late = backward(trial, shape, variant);
    trial.judge(late);
    // It differs from the first one in how rows come and go.
    if (v.odd && places) {
      EXPECT_EQ(differences(late, first), "");
    }
    if (first.empty()) first = late;
    Block::copies() = Block::kAtOnce;
    EXPECT_EQ(differences(backward(trial, shape, variant), late), "");
  }
  Block::copies() = Block::kLate;
}

void check(const Shape& shape) {
  SCOPED_TRACE("dim " + std::to_string(shape.dim) + ", length " + std::to_string(shape.length) + ", states " +
               std::to_string(shape.states) + ", warps " + std::to_string(shape.warps));
  check_state_loops(shape);
  Trial trial(shape, kForward);
  if (shape.warps > kBackwardVariants[variant_named("4x4_straight")].most_warps) {
    for (const auto copies : {Block::kAtOnce, Block::kLate}) {
      Block::copies() = copies;
      trial.judge(backward(trial, shape, "4x4"));
    }
    return;
  }
  const Trial::Results want = backward(trial, shape, "4x4_straight");
  trial.judge(want);
  for (const char* variant : {"4x4", "4x4_async_by3"}) {
    if (shape.warps > kBackwardVariants[variant_named(variant)].most_warps) continue;
    for (const auto copies : {Block::kAtOnce, Block::kLate}) {
      Block::copies() = copies;
      EXPECT_EQ(differences(backward(trial, shape, variant), want), "")
          << variant << (copies == Block::kLate ? ", late" : "");
    }
  }
  Block::copies() = Block::kLate;
}

// Rows that come in copies of 16 bytes: in tiles of 32 steps and what is left of them.
TEST(Async, TakesMultiplesOfEightSteps) {
  for (const int length : {8, 24, 32, 40, 64, 136, 296}) {
    check({.batch = 1, .dim = 9, .length = length, .states = 16});
    check({.batch = 2, .dim = 8, .length = length, .states = 16, .gated = false, .pad = 8});
  }
}
// Of 8 bytes.
TEST(Async, TakesMultiplesOfFourSteps) {
  for (const int length : {4, 12, 36, 60, 100, 132}) {
    check({.batch = 1, .dim = 9, .length = length, .states = 16, .stateful = true});
    check({.batch = 2, .dim = 8, .length = length, .states = 13, .gated = false, .pad = 4});
  }
  check({.batch = 2, .dim = 10, .length = 72, .states = 16, .groups = 2, .pad = 4});
}
// That are not copied.
TEST(Async, TakesOtherRows) {
  for (const int length : {1, 3, 8, 9, 31, 33, 39, 65, 98, 131}) {
    check({.batch = 1, .dim = 9, .length = length, .states = 16, .stateful = true});
    check({.batch = 2, .dim = 8, .length = length, .states = 11, .gated = false, .pad = length % 9});
  }
  check({.batch = 1, .dim = 19, .length = 203, .states = 16, .warps = 2, .segments = 3, .stateful = true});
  check({.batch = 2, .dim = 8, .length = 64, .states = 16, .pad = 2});
}
// The start states of 12 are read as vectors, those of 13 are not.
TEST(Async, TakesFewerStatesAndSeveralGroups) {
  for (const int states : {12, 13, 1}) {
    for (const bool saved : {false, true}) {
      check({.batch = 1, .dim = 13, .length = 104, .states = states, .saved = saved});
      check({.batch = 2, .dim = 10, .length = 72, .states = states, .groups = 2, .saved = saved});
    }
  }
}
// Of 1 to 16 warps the last has a part of its channels, or none.
TEST(Async, TakesBlocksOfSeveralWarps) {
  for (const int warps : {1, 2, 4, 8, 16}) {
    check({.batch = 1, .dim = warps * 8 - 3, .length = 72, .states = 16, .warps = warps, .saved = false});
    check({.batch = 1, .dim = warps * 8 + 1, .length = 104, .states = 16, .warps = warps, .gated = false});
  }
}
TEST(Async, TakesSegmentsAndStates) {
  for (const bool stateful : {false, true}) {
    for (const bool saved : {false, true}) {
      for (const int segments : {1, 3}) {
        Shape shape = {.batch = 2, .dim = 11, .length = 200, .states = 16, .segments = segments};
        shape.saved = saved, shape.stateful = stateful;
        check(shape);
        shape = {.batch = 1, .dim = 10, .length = 296, .states = 13, .groups = 2, .segments = segments};
        shape.warps = 2, shape.saved = saved, shape.stateful = stateful, shape.gated = false;
        check(shape);
      }
    }
  }
}

// What the tests above find where nobody waits; and which rows come by copies.
TEST(Async, FindsCopiesThatNobodyWaitsFor) {
  for (const std::string variant : {"4x4", "4x4_async_by3", "1x16", "1x16x2", "1x16_odd"}) {
    for (const int length : {104, 100, 98}) {
      SCOPED_TRACE(length);
      const Shape shape = {.batch = 1, .dim = 9, .length = length, .states = 16};
      const bool loops = variant[0] == '1', odd = variant.ends_with("_odd");
      if (loops && !odd && length % 4 != 0) continue;
      Trial trial(shape, kForward);
      const Trial::Results want = backward(trial, shape, loops ? variant.c_str() : "4x4_straight");
      Block::copies() = Block::kNever;
      EXPECT_EQ(differences(backward(trial, shape, variant.c_str()), want),
                length == 98 && !odd ? "" : "dA dB dC dD ddelta ddelta_bias du dz out_z ");
      Block::copies() = Block::kLate;
    }
  }
}

// The forward for rows at odd places (odd_rows.cuh): the bits of the kernel that reads and writes words.
int forward_named(const std::string& name) {
  int i = 0;
#define BACKWARD_VARIANT(...)
#define FORWARD_VARIANT(each, ...) \
  if (name == #each) return i;     \
  ++i;
#include "kernels/selective_scan/cuda/variants.def"
  return -1;
}
void check_odd_rows(const Shape& shape) {
  SCOPED_TRACE("dim " + std::to_string(shape.dim) + ", length " + std::to_string(shape.length) + ", pad " +
               std::to_string(shape.pad) + ", states " + std::to_string(shape.states));
  const Trial trial(shape, kForward);
  const auto choice = [&](const char* name) {
    return Choice{forward_named(name), std::max(shape.warps, 2), shape.segments, 2};
  };
  for (const auto& [plain, odd] : {std::pair{"4x4", "4x4_odd"}, {"4x4x1", "4x4x1_odd"}, {"2x8", "2x8_odd"}}) {
    if (std::max(shape.warps, 2) > kForwardVariants[forward_named(odd)].most_warps) continue;
    SCOPED_TRACE(odd);
    const Trial::Results want = trial.forward(choice(plain));
    if (!shape.by_dim) trial.judge(want);  // whose order is another
    for (const auto copies : {Block::kAtOnce, Block::kLate}) {
      Block::copies() = copies;
      EXPECT_EQ(differences(trial.forward(choice(odd)), want), "");
    }
  }
  Block::copies() = Block::kLate;
}
TEST(OddRows, OfEveryLengthHaveTheBitsOfTheOtherKernel) {
  for (int length = 1; length < 12; ++length)
    check_odd_rows({.batch = 2, .dim = 3, .length = length, .states = 16});
  for (const int length : {25, 31, 33, 36, 39, 40, 63, 65, 97, 98, 102, 131}) {
    check_odd_rows({.batch = 1, .dim = 19, .length = length, .states = 16, .stateful = true});
    check_odd_rows({.batch = 1, .dim = 19, .length = length, .states = 13, .gated = false, .pad = 3});
  }
}
TEST(OddRows, MayHavePadsGroupsAndAnyOrder) {
  for (int pad = 0; pad < 9; ++pad) {
    check_odd_rows(
        {.batch = 2, .dim = 18, .length = 64, .states = 9, .groups = 2, .pad = pad, .by_dim = true});
    check_odd_rows({.batch = 1, .dim = 5, .length = 43, .states = 16, .pad = pad});
  }
}
TEST(OddRows, MayBeCutAndInBlocksOfSeveralWarps) {
  for (const int length : {193, 197, 296, 303}) {
    check_odd_rows({.batch = 1, .dim = 17, .length = length, .states = 16, .segments = 3, .stateful = true});
    check_odd_rows({.batch = 1, .dim = 40, .length = length, .states = 16, .warps = 4, .pad = 1});
  }
}
TEST(OddRows, FindsCopiesThatNobodyWaitsFor) {
  const Trial trial({.batch = 1, .dim = 9, .length = 99, .states = 16}, kForward);
  const Trial::Results want = trial.forward({forward_named("4x4"), 2, 1, 1});
  Block::copies() = Block::kNever;
  EXPECT_EQ(differences(trial.forward({forward_named("4x4_odd"), 2, 1, 1}), want), "out out_z x ");
  Block::copies() = Block::kLate;
}

}  // namespace
}  // namespace scankit::selective_scan
