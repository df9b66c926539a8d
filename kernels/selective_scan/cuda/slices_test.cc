// SPDX-License-Identifier: Apache-2.0
// The plain kernels that take the states in slices: their device code on the CPU (emulator.h) against the
// fp64 oracle, in every variant, the tuner's candidates too.
#include <gtest/gtest.h>

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

int sliced_backward() {
  for (int v = 0; v < kBackwardVariantCount; ++v)
    if (kBackwardVariants[v].sliced) return v;
  return -1;
}
// The gradients too, from the states that the forward has saved: so those of every tile are judged.
template <class Check>
void in_every_variant(const Check& check) {
  for (int v = 0; v < kForwardVariantCount; ++v) {
    const Variant& variant = kForwardVariants[v];
    if (!variant.sliced) continue;
    SCOPED_TRACE("forward variant " + std::to_string(v));
    for (int warps = variant.fewest_warps; warps <= variant.most_warps; warps *= 4) check(v, warps);
  }
}
void judge(const Shape& shape, int variant, int warps, bool with_x = true) {
  SCOPED_TRACE(std::to_string(shape.states) + " states, length " + std::to_string(shape.length));
  Trial(shape).check(Choice{variant, warps, 1, 1}, Choice{sliced_backward(), 4, 1, 1}, with_x);
}

// Slices that are full, that have one state, and that no state is left for.
TEST(Slices, AreRightForEveryCountOfStates) {
  for (const int states : {1, 17, 33, 64, 65, 100, 128, 256})
    in_every_variant([&](int v, int warps) { judge({1, 3, 97, states, 1}, v, warps); });
}
// Whole pieces, which come ahead; one tile, one span, a tile more; all warps of a block and a channel more.
TEST(Slices, AreRightForEveryLength) {
  for (const int length : {1, 8, 32, 40, 64, 72, 128, 160})
    in_every_variant([&](int v, int warps) {
      const bool long_one = length == 72;
      const int channels = long_one ? warps * kForwardVariants[v].warp_channels + 1 : 5;
      judge({1, channels, length, 65, 1}, v, warps);
    });
}
TEST(Slices, AreRightForFewChannelsGroupsAndStates) {
  for (const bool gated : {false, true})
    in_every_variant([&](int v, int warps) {
      judge({2, 14, 35, 33, 2, true, gated}, v, warps);
      judge({1, 1, 64, 70, 1, true, gated}, v, warps, false);
      judge({1, 3, 136, 17, 3, false, gated}, v, warps);
    });
}

}  // namespace
}  // namespace scankit::selective_scan
