// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/causal_conv1d/cuda/vector.cuh"

// The Access of rows of whole pieces in the backward since sm_80: copies to shared memory (cp.async),
// which need no register on their way. Loads do, and wait for each other: a warp has six counters for all
// that it waits for, loads, shuffles and exponentials alike, and waits until a counter is zero, so that
// the tile after next holds up this one.
namespace scankit::causal_conv1d {

// Copies 16 bytes, or zeros where `there` is false; does nothing where `wanted` is false, by a predicate and
// not by a branch, in which one of 32 lanes would hold up the others. A copy is sure to have happened behind
// wait_for_copies, which waits for the thread's own copies, all but those of the last kLeft commits.
#ifdef SCANKIT_EMULATED
SCANKIT_DEVICE void copy_16_bytes(void* to, const char* from, bool there, bool wanted = true) {
  if (wanted) emulator::Block::current()->copy(to, there ? from : nullptr, 16);
}
SCANKIT_DEVICE void commit_copies() { emulator::Block::current()->commit_copies(); }
template <int kLeft>
SCANKIT_DEVICE void wait_for_copies() {
  emulator::Block::current()->wait_for_copies(kLeft);
}
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
SCANKIT_DEVICE void copy_16_bytes(void* to, const char* from, bool there, bool wanted = true) {
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(to)), bytes = there ? 16 : 0;
  asm volatile(
      "{\n\t"
      ".reg .pred p;\n\t"
      "setp.ne.u32 p, %3, 0;\n\t"
      "@p cp.async.cg.shared.global [%0], [%1], 16, %2;\n\t"
      "}" ::"r"(at),
      "l"(from), "r"(bytes), "r"(wanted ? 1u : 0u)
      : "memory");
}
SCANKIT_DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kLeft>
SCANKIT_DEVICE void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}
#endif

#if defined(SCANKIT_EMULATED) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800)
#define SCANKIT_COPIED
static_assert(sizeof(Stage) == kStageBytes);
#ifdef SCANKIT_EMULATED
inline bool& takes_copies() {  // a test may have registers, too
  static bool value = true;
  return value;
}
inline Stage* block_stages() {
  static Stage stages[kMostWarps * kStagesOfWarp];
  return stages;
}
#else
// Constant on a GPU: the compiler drops the other way.
SCANKIT_DEVICE bool takes_copies() { return true; }
SCANKIT_DEVICE Stage* block_stages() {
  extern __shared__ Stage stages[];
  return stages;
}
#endif

// A slot is a Stage: the piece before the tile, then the lanes' pieces. `stage` is a lane's place in the
// warp's first slot, 16 bytes further for each lane: from there, whatever the lane, words[0] is the piece
// before its own, and words[1] its own.
template <class T>
struct Copied {
  static constexpr int kLaneBytes = 16, kBackwardAhead = kStagesOfWarp / 2;
  static constexpr bool kAllOrNothing = true, kBeside = true;
  struct Asked {};
  struct Before {};

  SCANKIT_DEVICE static Stage* lane_stage() {
    unsigned at = threadIdx.x / 32 * kStagesOfWarp * kStageBytes + threadIdx.x % 32 * 16;
#ifndef SCANKIT_EMULATED
    asm volatile("" : "+r"(at));  // not to be computed again at each use
#endif
    return reinterpret_cast<Stage*>(reinterpret_cast<char*>(block_stages()) + at);
  }
  // Slots 2 k and 2 k + 1 have x and dout of a warp's k-th tile under way.
  SCANKIT_DEVICE static Stage* slot(Stage* stage, int i) { return stage + i; }
  // Each lane copies its own 16 bytes of the tile: 512 bytes side by side in global memory, and
  // conflict-free in shared memory.
  SCANKIT_DEVICE static void ask(const char* from, int left, int lane, Stage* slot, Asked&) {
    copy_16_bytes(slot->words[1], from, left > lane * T::kPiece);
  }
  // By lane 31, which has the address already: its piece of the tile before is the one wanted.
  SCANKIT_DEVICE static void ask_before(const char* from, bool any, int lane, Stage* slot, Before&) {
    char* const first = reinterpret_cast<char*>(slot) - 31 * 16;  // of the slot, seen from the last lane
    copy_16_bytes(first, from - kTileBytes, any, lane == 31);
  }
  SCANKIT_DEVICE static void commit() { commit_copies(); }
  template <int kLeft>
  SCANKIT_DEVICE static void wait() {
    wait_for_copies<kLeft>();
    __syncwarp();  // for the other lanes' copies
  }
  // Everybody has read what is to be overwritten.
  SCANKIT_DEVICE static void release() { __syncwarp(); }
  SCANKIT_DEVICE static void get(const Asked&, Stage* slot, int, unsigned (&w)[4]) {
    const uint4 v = *reinterpret_cast<const uint4*>(slot->words[1]);
    w[0] = v.x, w[1] = v.y, w[2] = v.z, w[3] = v.w;
  }
  SCANKIT_DEVICE static void get_before(const Before&, Stage*, int, unsigned (&)[4]) {}
  SCANKIT_DEVICE static void set_before(Stage* slot, int lane, const unsigned (&w)[4]) {
    if (lane == 0) *reinterpret_cast<uint4*>(slot->words[0]) = make_uint4(w[0], w[1], w[2], w[3]);
    __syncwarp();
  }
  // No shuffle: the piece before is next to the lane's own.
  SCANKIT_DEVICE static void history(Stage* slot, const unsigned (&)[4], const unsigned (&)[4], int,
                                     float* x) {
    unsigned edge[T::kEdge];
    if constexpr (T::kEdge == 2) {
      const uint2 v = *reinterpret_cast<const uint2*>(slot->words[0] + 2);
      edge[0] = v.x, edge[1] = v.y;
    } else {
      const uint4 v = *reinterpret_cast<const uint4*>(slot->words[0]);
      edge[0] = v.y, edge[1] = v.z, edge[2] = v.w;
    }
    T::unpack_edge(edge, x);
  }
  SCANKIT_DEVICE static void put(char* to, int left, int lane, Stage*, const unsigned (&w)[4]) {
    Whole<T>::put(to, left, lane, nullptr, w);
  }
};
#endif

}  // namespace scankit::causal_conv1d
