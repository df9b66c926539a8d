// SPDX-License-Identifier: Apache-2.0
#pragma once
// Device code on the CPU, for a test without a GPU: a block's threads are fibers of one thread, which run in
// turn from one barrier to the next, each block's in another order: where a barrier is missing between a
// write and a read, one of the orders computes something else. It shows wrong arithmetic, wrong indices and
// barriers that not all threads reach, too. Copies that a thread has to wait for happen when it waits, or at
// once. Slow. Included before the device code.
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

// NOLINTBEGIN(bugprone-reserved-identifier): CUDA's names.
#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__
#define __grid_constant__
#define __align__(bytes)
#define __launch_bounds__(...)

// CUDA's vector types and intrinsics, as far as the device code uses them.
struct float4 {
  float x, y, z, w;
};
struct uint4 {
  unsigned x, y, z, w;
};
struct uint2 {
  unsigned x, y;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((std::uint64_t{high} << 32 | low) >> (shift & 31));
}

// NOLINTEND(bugprone-reserved-identifier)

namespace scankit::emulator {

struct Index3 {
  unsigned x, y;
};

// The block that runs, and which of its threads. A thread is a fiber that gives up its turn only at a
// barrier, so between two barriers it runs alone: races show by the order of turns, not by chance.
class Block {
 public:
  enum Barrier { kWarp, kWhole };

  enum Order { kUp, kDown, kMixed };

  // When a copy that somebody has to wait for happens: when its thread waits for it, when it is asked for (a
  // GPU may do either), or never, as if nobody waited.
  enum Copies { kLate, kAtOnce, kNever };

  // body: the kernel with its arguments, called once a thread.
  Block(unsigned threads, std::function<void()> body, Order order)
      : body_(std::move(body)), threads_(threads), slots_(threads), order_(order), turns_(threads) {
    std::iota(turns_.begin(), turns_.end(), std::size_t{0});
    if (order == kDown) std::ranges::reverse(turns_);
  }

  // Each block's threads in another order than those of the block before.
  static Order next_order() {
    static unsigned blocks = 0;
    return static_cast<Order>(blocks++ % 3);
  }

  // Runs all threads to their ends. Aborts where some wait at a barrier that others never reach.
  void run() {
    current() = this;
    constexpr std::size_t kStack = 128 * 1024;
    static std::vector<char> stacks;  // of all blocks: fresh pages cost more than what runs on them
    stacks.resize(kStack * threads_.size());
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      ucontext_t& context = threads_[i].context;
      getcontext(&context);
      context.uc_stack.ss_sp = stacks.data() + i * kStack;
      context.uc_stack.ss_size = kStack;
      makecontext(&context, &Block::start, 0);
    }
    for (std::size_t left = threads_.size(); left > 0;) {
      bool moved = false;
      if (order_ == kMixed) std::ranges::shuffle(turns_, random_);
      for (const std::size_t turn : turns_) {
        now_ = turn;
        if (threads_[now_].ended || !may_go_on()) continue;
        moved = true;
        resume();
        if (threads_[now_].ended) --left;
      }
      if (moved) continue;
      std::fprintf(stderr, "emulator: not all threads reach a barrier\n");
      std::abort();
    }
    current() = nullptr;
  }

  // The running thread gives up its turn until all of its warp, or of the block, have come to
  // their barrier of the same count.
  void wait(Barrier barrier) {
    threads_[now_].at = barrier;
    ++threads_[now_].passed[barrier];
    if (_setjmp(threads_[now_].place) == 0) _longjmp(main_place_, 1);
  }
  // Zeros where `from` is null. Those not committed are not waited for.
  void copy(void* to, const void* from, std::size_t bytes) {
    const Copy copy = {to, from, bytes};
    if (copies() == kAtOnce) copy.run();
    if (copies() == kLate) threads_[now_].asked.push_back(copy);
  }
  // Makes a group of those asked for since the last one.
  void commit_copies() {
    Thread& thread = threads_[now_];
    thread.groups.push_back(thread.asked.size());
  }
  // For all groups but the `left` last ones.
  void wait_for_copies(std::size_t left = 0) {
    Thread& thread = threads_[now_];
    if (thread.groups.size() <= left) return;
    const auto last = thread.groups.end() - static_cast<std::ptrdiff_t>(left);
    const std::size_t count = *(last - 1);
    const auto begin = thread.asked.begin(), end = begin + static_cast<std::ptrdiff_t>(count);
    std::for_each(begin, end, [](const Copy& copy) { copy.run(); });
    thread.asked.erase(begin, end);
    thread.groups.erase(thread.groups.begin(), last);
    for (std::size_t& group : thread.groups) group -= count;
  }
  // For all blocks from now on.
  static Copies& copies() {
    static Copies when = kLate;
    return when;
  }
  // Where a thread leaves a value for a shuffle.
  float& slot(unsigned thread) { return slots_[thread]; }
  unsigned thread() const { return static_cast<unsigned>(now_); }
  static Block*& current() {
    static Block* block = nullptr;
    return block;
  }

 private:
  struct Copy {
    void* to;
    const void* from;
    std::size_t bytes;
    void run() const {
      if (from != nullptr)
        std::memcpy(to, from, bytes);
      else
        std::memset(to, 0, bytes);
    }
  };
  struct Thread {
    ucontext_t context = {};
    jmp_buf place = {};
    bool begun = false;
    unsigned passed[2] = {};  // barriers of each kind, with the one it waits at
    Barrier at = kWhole;
    bool ended = false;
    std::vector<Copy> asked = {};          // not yet done
    std::vector<std::size_t> groups = {};  // where each ends among them
  };

  // swapcontext asks the kernel for the signal mask each time: it is used where a fiber begins, no more.
  void resume() {
    if (_setjmp(main_place_) != 0) return;
    Thread& thread = threads_[now_];
    if (thread.begun) _longjmp(thread.place, 1);
    thread.begun = true;
    swapcontext(&main_, &thread.context);
  }
  static void start() {
    current()->body_();
    current()->threads_[current()->now_].ended = true;
    _longjmp(current()->main_place_, 1);
  }
  // All of its warp, or of the block, have come as far.
  bool may_go_on() const {
    const Thread& mine = threads_[now_];
    const std::size_t first = mine.at == kWhole ? 0 : now_ / 32 * 32;
    const std::size_t end = mine.at == kWhole ? threads_.size() : std::min(first + 32, threads_.size());
    return std::all_of(threads_.begin() + static_cast<std::ptrdiff_t>(first),
                       threads_.begin() + static_cast<std::ptrdiff_t>(end), [&](const Thread& other) {
                         return other.ended || other.passed[mine.at] >= mine.passed[mine.at];
                       });
  }

  std::function<void()> body_;
  ucontext_t main_ = {};
  jmp_buf main_place_ = {};
  std::vector<Thread> threads_;
  std::vector<float> slots_;
  std::size_t now_ = 0;
  Order order_;
  std::vector<std::size_t> turns_;
  std::minstd_rand random_{7};
};

struct ThreadIndex {
  struct Get {
    operator unsigned() const { return Block::current()->thread(); }
  } x;
};

}  // namespace scankit::emulator

inline scankit::emulator::ThreadIndex threadIdx;
inline scankit::emulator::Index3 blockIdx, blockDim;
// NOLINTBEGIN(bugprone-reserved-identifier)
inline void __syncthreads() { scankit::emulator::Block::current()->wait(scankit::emulator::Block::kWhole); }
inline void __syncwarp() { scankit::emulator::Block::current()->wait(scankit::emulator::Block::kWarp); }
// Shuffles take the mask as full: the device code uses no other. Each is two barriers of the warp, one
// before the values are read and one before the next shuffle overwrites them.
inline float __shfl_xor_sync(unsigned, float value, int distance) {
  auto& block = *scankit::emulator::Block::current();
  block.slot(block.thread()) = value;
  __syncwarp();
  const float other = block.slot(block.thread() ^ static_cast<unsigned>(distance));
  __syncwarp();
  return other;
}
template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  auto& block = *scankit::emulator::Block::current();
  block.slot(block.thread()) = std::bit_cast<float>(value);
  __syncwarp();
  const T other = std::bit_cast<T>(block.slot(block.thread() / 32 * 32 + static_cast<unsigned>(lane)));
  __syncwarp();
  return other;
}
// The value of lane `from` among the `width` neighbours that the thread is one of; its own where there is
// no such lane.
inline float __shfl_sync(unsigned, float value, int from, int width) {
  auto& block = *scankit::emulator::Block::current();
  const int thread = static_cast<int>(block.thread()), first = thread / width * width;
  block.slot(block.thread()) = value;
  __syncwarp();
  const float other = block.slot(static_cast<unsigned>(from >= 0 && from < width ? first + from : thread));
  __syncwarp();
  return other;
}
inline float __shfl_up_sync(unsigned all, float value, int distance, int width) {
  return __shfl_sync(all, value, static_cast<int>(threadIdx.x) % width - distance, width);
}
inline float __shfl_down_sync(unsigned all, float value, int distance, int width) {
  return __shfl_sync(all, value, static_cast<int>(threadIdx.x) % width + distance, width);
}
// NOLINTEND(bugprone-reserved-identifier)
