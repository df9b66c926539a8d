// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/cuda/choice.h"

#include "kernels/selective_scan/cuda/layout.h"

namespace scankit::selective_scan {
namespace {

template <class L, class Memory>
constexpr Variant make_variant(bool sliced, int threads, int busy, int alone) {
  return {L::kLanes,
          L::kPer,
          L::kChannels,
          sliced,
          Memory::kFewestWarps,
          threads / 32,
          L::kWarpChannels,
          Memory::kBlock,
          Memory::kWarp,
          Memory::kWarpSlice,
          busy,
          alone};
}

constexpr Index kMostBlocks = 0x7fffffff;

Index divide_up(Index a, Index b) { return (a + b - 1) / b; }

// Predicted cycles per step of the scheduler with the most warps. A warp beside a waiting one costs a third
// of its busy time: fitted to an H200, right to 15 % for 1 to 10 warps.
Index predict(const Variant& variant, int warps, const Common& common, const device::DeviceFacts& facts) {
  const Index blocks = block_count(variant, warps, common);
  const Index schedulers = 4;
  const Index warps_here = divide_up(divide_up(blocks, facts.multiprocessors) * warps, schedulers);
  const Index busy = warps_here * variant.busy, waiting = variant.alone + (warps_here - 1) * variant.busy / 3;
  return busy > waiting ? busy : waiting;
}

bool fits(const Variant& variant, const Common& common) {
  if (variant.sliced) return common.states > 16;
  const int slice = variant.lanes * variant.per_lane;
  // A smaller slice that holds all states does the same work with fewer idle lanes.
  return common.states <= slice && (slice == 4 || common.states > slice / 2);
}

bool choose(const Variant* variants, int count, const int (&candidates)[4], const Common& common,
            const device::DeviceFacts& facts, Choice* choice) {
  Index best = -1;
  for (int v = 0; v < count; ++v) {
    if (!fits(variants[v], common)) continue;
    for (const int warps : candidates) {
      if (warps > variants[v].most_warps || warps < variants[v].fewest_warps) continue;
      if (shared_bytes(variants[v], warps, common.states) > facts.shared_per_block) continue;
      const Index time = predict(variants[v], warps, common, facts);
      if (best >= 0 && time >= best) continue;
      best = time;
      *choice = {v, warps};
    }
  }
  return best >= 0;
}

}  // namespace

#define FORWARD_VARIANT(name, lanes, per, channels, sliced, threads, blocks, blocks32, busy, alone) \
  make_variant<Layout<lanes, per, channels>, ForwardMemory<Layout<lanes, per, channels>, sliced>>(  \
      sliced, threads, busy, alone),
const Variant kForwardVariants[] = {
#include "kernels/selective_scan/cuda/variants.def"
};
const int kForwardVariantCount = sizeof kForwardVariants / sizeof *kForwardVariants;

#define BACKWARD_VARIANT(name, lanes, per, channels, sliced, threads, blocks, blocks32, busy, alone) \
  make_variant<Layout<lanes, per, channels>, BackwardMemory<Layout<lanes, per, channels>, sliced>>(  \
      sliced, threads, busy, alone),
const Variant kBackwardVariants[] = {
#include "kernels/selective_scan/cuda/variants.def"
};
const int kBackwardVariantCount = sizeof kBackwardVariants / sizeof *kBackwardVariants;

int shared_bytes(const Variant& variant, int warps, int states) {
  const int slice = variant.lanes * variant.per_lane;
  const int slices = (states + slice - 1) / slice;
  return 4 * (variant.block_floats + warps * (variant.warp_floats + slices * variant.warp_slice_floats));
}

Index block_count(const Variant& variant, int warps, const Common& common) {
  const Index tiles = divide_up(common.dim / common.groups, Index{warps} * variant.warp_channels);
  const Index of_batch = tiles * common.groups;
  if (common.batch > 0 && of_batch > kMostBlocks / common.batch) return -1;
  return of_batch * common.batch;
}

// Of equal predictions the first wins. Forward: small blocks start and end more evenly; slices need much
// shared memory a warp.
// Backward: large blocks leave fewer slabs of dB and dC to sum.
bool choose_forward(const Common& common, const device::DeviceFacts& facts, Choice* choice) {
  return choose(kForwardVariants, kForwardVariantCount, {2, 4, 1, 1}, common, facts, choice);
}
bool choose_backward(const Common& common, const device::DeviceFacts& facts, Choice* choice) {
  return choose(kBackwardVariants, kBackwardVariantCount, {8, 4, 2, 1}, common, facts, choice);
}

}  // namespace scankit::selective_scan
