// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/cuda/emulator.h"

#include <gtest/gtest.h>

#include <set>

// That the emulator finds what it is there for: a barrier that is missing.
namespace scankit::emulator {
namespace {

constexpr unsigned kThreads = 64;
unsigned shared[kThreads], seen[kThreads];

enum class Missing { kNothing, kBeforeRead, kBeforeRewrite };

// Each thread hands a number to the one above it, twice.
void hand_up(Missing missing) {
  const unsigned me = threadIdx.x, below = (me + kThreads - 1) % kThreads;
  shared[me] = me + 1;
  if (missing != Missing::kBeforeRead) __syncthreads();
  seen[me] = shared[below];
  if (missing != Missing::kBeforeRewrite) __syncthreads();
  shared[me] = 100 * (me + 1);
  __syncthreads();
  seen[me] += shared[below];
}

std::size_t different_results(Missing missing) {
  std::set<std::vector<unsigned>> results;
  for (const auto order : {Block::kUp, Block::kDown, Block::kMixed}) {
    std::fill(std::begin(shared), std::end(shared), 0u);
    Block(
        kThreads, [&] { hand_up(missing); }, order)
        .run();
    results.insert({std::begin(seen), std::end(seen)});
  }
  return results.size();
}

TEST(Emulator, ComputesTheSameInEveryOrder) { EXPECT_EQ(different_results(Missing::kNothing), 1u); }
TEST(Emulator, FindsAReadThatMayComeBeforeItsWrite) {
  EXPECT_GT(different_results(Missing::kBeforeRead), 1u);
}
TEST(Emulator, FindsAWriteThatMayComeBeforeARead) {
  EXPECT_GT(different_results(Missing::kBeforeRewrite), 1u);
}
TEST(Emulator, GivesEachBlockAnotherOrder) {
  const auto first = Block::next_order(), second = Block::next_order(), third = Block::next_order();
  EXPECT_EQ((std::set{first, second, third}).size(), 3u);
}

}  // namespace
}  // namespace scankit::emulator
