// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/causal_conv1d/cuda/vector_cut.h"

// Which calls the kernels of forward_pairs.cuh take, and their segments: as in vector_cut.h.
namespace scankit::causal_conv1d {

// Whether every pair of channels 2 k, 2 k + 1 is one aligned access.
template <class S>
bool has_pairs(const S& signal, const Common& c) {
  const Index step = c.length > 1 ? signal.step_stride : 0, batch = c.batch > 1 ? signal.batch_stride : 0;
  return signal.dim_stride == 1 && step % 2 == 0 && batch % 2 == 0 &&
         reinterpret_cast<uintptr_t>(signal.data) % static_cast<uintptr_t>(2 * element_size(c.dtype)) == 0;
}

// Segments of all batches, in blocks.
inline Index parts_of(const Common& c, const Segments& segments) {
  return (Index{c.batch} * segments.count + kWarps - 1) / kWarps;
}

// Steps of a segment, a multiple of eight, for about kWarpsWanted warps. Its kHistory steps on either side
// are read twice: 32 steps at least.
inline Segments cut_to_segments(const Common& c, bool states) {
  const Index tiles = (c.dim + kPairChannels - 1) / kPairChannels;
  Index steps = (Index{c.length} * c.batch * tiles / kWarpsWanted + 7) / 8 * 8;
  steps = steps < 32 ? 32 : steps > 256 ? 256 : steps;
  return {static_cast<int>(steps), static_cast<int>((c.length + steps - 1) / steps), states};
}

// Whether the kernels for pairs take the call, by all signals that they read and write in pairs.
template <class... Signals>
bool pairs_go(const Common& c, const Signals&... signals) {
  return c.sequence == nullptr && c.batch > 0 && c.dim > 0 && c.dim % 2 == 0 && c.length > 0 &&
         c.length <= kMostSteps && (... && has_pairs(signals, c)) &&
         parts_of(c, cut_to_segments(c, false)) <= kMostParts;
}

}  // namespace scankit::causal_conv1d
