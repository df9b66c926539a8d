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

// What a thread sees of four words that it copies, and then of zeros over them.
std::vector<unsigned> copied(bool commits, bool waits) {
  static const unsigned from[4] = {1, 2, 3, 4};
  std::vector<unsigned> to(4, 9), result;
  const auto copy = [&](const void* source) {
    Block& block = *Block::current();
    block.copy(to.data(), source, 16);
    if (commits) block.commit_copies();
    if (waits) block.wait_for_copies();
    result.insert(result.end(), to.begin(), to.end());
  };
  Block(
      1, [&] { copy(from), copy(nullptr); }, Block::kUp)
      .run();
  return result;
}

TEST(Emulator, CopiesWhenAThreadWaits) {
  EXPECT_EQ(copied(true, true), (std::vector<unsigned>{1, 2, 3, 4, 0, 0, 0, 0}));
}
TEST(Emulator, FindsACopyThatNobodyWaitsFor) {
  EXPECT_EQ(copied(true, false), std::vector<unsigned>(8, 9));
  EXPECT_EQ(copied(false, true), std::vector<unsigned>(8, 9));
}

}  // namespace
}  // namespace scankit::emulator
