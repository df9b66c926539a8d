// SPDX-License-Identifier: Apache-2.0
// A backward that is given no states keeps them in du (kept_states.h): the same bits as from saved ones, in
// every plain kernel, for fp32 and, compiled once more, bf16. Device code on the CPU (emulator.h).
#include <gtest/gtest.h>

#include <string>

#define SCANKIT_EMULATED
#include "kernels/selective_scan/cuda/emulator.h"

#define SCANKIT_FORWARD
#define SCANKIT_BACKWARD
#define SCANKIT_CONSTANT
#define SCANKIT_REDUCE
namespace scankit::selective_scan {
alignas(16) static float memory[57 << 10];  // a block's shared memory, as the kernels declare it
}
#include "kernels/selective_scan/cuda/entry.cuh"
//
#include "kernels/selective_scan/cuda/guarded_trial_test.h"

namespace scankit::selective_scan {
namespace {

using emulator::Block;

constexpr bool kIsShort = kNumber != DType::F32;

int states_of(const Variant& variant) { return variant.lanes * variant.per_lane; }
// One that keeps so many states in registers, `which` of them.
Choice forward_of(const Shape& shape, int which) {
  int usable[32], count = 0;
  for (int v = 0; v < kForwardVariantCount; ++v)
    if (!kForwardVariants[v].sliced && (kIsShort || !kForwardVariants[v].odd) &&
        states_of(kForwardVariants[v]) >= shape.states)
      usable[count++] = v;
  const int v = shape.constant_B || shape.constant_C ? 0 : usable[which % count];
  const bool cut = which / 3 % 2 != 0;  // as the backward, or otherwise
  return {v, kForwardVariants[v].fewest_warps > 2 ? 4 : 2, cut ? shape.segments : 1, 2};
}
bool in_du(const device::Plan& plan) {
  BackwardArguments arguments;
  std::memcpy(&arguments, plan.launches[plan.launch_count - 1 - (plan.launch_count > 1)].argument,
              sizeof arguments);
  const std::string symbol = kCudaKernels[plan.launches[plan.launch_count - 1].kernel].symbol;
  if (symbol != "scankit_reduce")  // a direct one
    std::memcpy(&arguments, plan.launches[plan.launch_count - 1].argument, sizeof arguments);
  return !arguments.x_in_workspace && arguments.backward.x.data != nullptr;
}

bool g_with_rounds = false;  // some ran so

// The last tile's du, a part of a whole one's; an odd row's states begin an element late.
bool has_room(int length, int states) {
  const int size = kIsShort ? 2 : 4;
  return length % 32 * size >= states * 4 + length * size % 4;
}

// In rounds: the same bits but in what is summed over the length, in another order.
void check_rounds(Trial& trial, const Shape& shape, Choice choice, Trial::Results want) {
  static int rounds = 0;
  if (choice.segments > 1) return;
  const int whole = trial.last_plan.launch_count;
  choice.rounds = 2 + rounds++ % 3;
  const Trial::Results got = trial.backward(choice, false);
  // Not of a constant B or C, nor of rows at odd places. Two places from one round to the next.
  const bool odd = kIsShort && (shape.length + shape.pad) % 2 != 0;
  const int tiles = (shape.length + 31) / 32, each = (tiles + choice.rounds - 1) / choice.rounds;
  const bool can = !shape.constant_B && !shape.constant_C && !odd && tiles > 1;
  ASSERT_EQ(trial.last_plan.place_count, can ? 2 * ((tiles + each - 1) / each - 1) : 0);
  if (!can) return;
  g_with_rounds = true;
  EXPECT_GT(trial.last_plan.launch_count, whole);
  if (!shape.by_dim) trial.judge(got);
  for (const char* summed : {"dA", "dD", "ddelta_bias"}) want[summed] = got.at(summed);
  EXPECT_EQ(differences(got, want), "") << choice.rounds << " rounds";
}

// By variant `v` of the backward; `keeps`: du has room for the states.
void check(const Shape& shape, int v, bool keeps = true) {
  static int forwards = 0;
  if (kBackwardVariants[v].odd && !kIsShort) return;
  if (kBackwardVariants[v].halves && (shape.length % 4 != 0 || shape.pad % 4 != 0)) return;
  SCOPED_TRACE("backward variant " + std::to_string(v) + ", length " + std::to_string(shape.length) +
               ", states " + std::to_string(shape.states) + ", segments " + std::to_string(shape.segments) +
               ", pad " + std::to_string(shape.pad) + ", forward " + std::to_string(forwards));
  Trial trial(shape, forward_of(shape, forwards++));
  const Choice choice = {v, shape.warps, shape.segments, 2};
  const Trial::Results want = trial.backward(choice, true);
  if (!shape.by_dim) trial.judge(want);
  const std::size_t slabs = trial.last_plan.workspace_bytes;
  const bool copies_ahead =
      (kIsShort || kBackwardVariants[v].halves) && states_of(kBackwardVariants[v]) == 16;
  for (const auto copies : {Block::kAtOnce, Block::kLate}) {
    if (copies == Block::kAtOnce && !copies_ahead) continue;
    Block::copies() = copies;
    EXPECT_EQ(differences(trial.backward(choice, false), want), "");
    EXPECT_EQ(in_du(trial.last_plan), keeps);
    if (keeps && shape.segments == 1 && trial.last_plan.launch_count < 4) {
      EXPECT_EQ(trial.last_plan.workspace_bytes, slabs);
    }
  }
  if (keeps) check_rounds(trial, shape, choice, want);
  // du begins late then, and rows at odd places are not for every variant.
  if (!kIsShort || forwards % 4 != 0 || kBackwardVariants[v].halves) return;
  EXPECT_EQ(differences(trial.backward(choice, false, 1), want), "") << "in the workspace";
  EXPECT_FALSE(in_du(trial.last_plan));
}

// Every variant of at least so many states and less than four times as many, or the constant one.
template <class Each>
void for_variants(int states, const Each& each) {
  for (int v = 0; v < kBackwardVariantCount; ++v) {
    const Variant& variant = kBackwardVariants[v];
    if (!variant.sliced && states_of(variant) >= states && states_of(variant) < 4 * states + 4) each(v);
  }
}

TEST(KeptStates, AreRightInWholeTiles) {
  for (const int states : {1, 3, 8, 13, 16}) {
    for_variants(states, [&](int v) {
      for (const int segments : {1, 3}) {
        Shape shape = {.batch = 2, .dim = 6, .length = 64, .states = states, .segments = segments};
        shape.gated = false;
        check(shape, v);
        shape = {.batch = 2, .dim = 6, .length = 96, .states = states, .groups = 2, .segments = segments};
        shape.stateful = true, shape.pad = 8;
        check(shape, v);
      }
      check({.batch = 1, .dim = 9, .length = 256, .states = states, .warps = 2, .segments = 4}, v);
    });
  }
  EXPECT_TRUE(g_with_rounds);
}
// Not cut, every length has room, rows at odd places too.
TEST(KeptStates, AreRightInEveryLength) {
  for (const int states : {1, 4, 13, 16}) {
    for_variants(states, [&](int v) {
      for (const int length : {33, 36, 40, 66, 97, 127}) {
        Shape shape = {.batch = 2, .dim = 10, .length = length, .states = states, .pad = length % 3};
        shape.groups = length % 3 == 0 ? 2 : 1, shape.stateful = length % 2 == 0;
        check(shape, v);
      }
      for (const int length : {66, 67})
        check({.batch = 2, .dim = 18, .length = length, .states = states, .warps = 2, .by_dim = true}, v);
    });
  }
}
// Where the warps of a block are many, some have a part of their channels, or none.
TEST(KeptStates, AreRightInBlocksOfManyWarps) {
  for_variants(16, [&](int v) {
    if (!kBackwardVariants[v].halves) return;
    for (const int warps : {4, kBackwardVariants[v].most_warps}) {
      const int channels = warps * kBackwardVariants[v].warp_channels;
      check({.batch = 1, .dim = channels - 3, .length = 72, .states = 16, .warps = warps}, v);
      check({.batch = 1, .dim = channels + 1, .length = 100, .states = 14, .warps = warps}, v);
    }
  });
}
// What the tests above find where nobody waits for what was copied.
TEST(KeptStates, AreWrongWhereNobodyWaitsForCopies) {
  for_variants(16, [&](int v) {
    if (!kBackwardVariants[v].halves) return;
    Trial trial({.batch = 1, .dim = 9, .length = 100, .states = 16}, {2, 2, 1, 1});
    const Trial::Results want = trial.backward({v, 1, 1, 2}, true);
    Block::copies() = Block::kNever;
    EXPECT_EQ(
        differences(trial.backward({v, 1, 1, 2}, true), want),
        kIsShort ? "dA dB dC dD ddelta ddelta_bias du dz out_z " : "dA dB dC dD ddelta ddelta_bias du dz ");
    Block::copies() = Block::kLate;
  });
}
// Cut, the last tile must have room, too.
TEST(KeptStates, GoToTheWorkspaceWhereDuHasNoRoom) {
  for_variants(16, [&](int v) {
    for (const int length : {129, 143, 144, 159}) {
      Shape shape = {.batch = 2, .dim = 10, .length = length, .states = 16, .segments = 2};
      check(shape, v, has_room(length, 16));
    }
  });
  for_variants(4, [&](int v) {
    for (const int length : {131, 132, 136, 137})
      check({.batch = 2, .dim = 10, .length = length, .states = 4, .segments = 2}, v, has_room(length, 4));
  });
}
TEST(KeptStates, AreRightWhereBOrCIsConstant) {
  for (const int kind : {1, 2, 3}) {
    for (const int states : {1, 7, 16}) {
      for (const int length : {97, 192, 200}) {
        for (const int segments : {1, 3}) {
          Shape shape = {.batch = 2, .dim = 10, .length = length, .states = states, .segments = segments};
          shape.constant_B = (kind & 2) != 0, shape.constant_C = (kind & 1) != 0;
          check(shape, 0, segments == 1 || length % 32 == 0 || has_room(length, states));
        }
      }
    }
  }
}

}  // namespace
}  // namespace scankit::selective_scan
