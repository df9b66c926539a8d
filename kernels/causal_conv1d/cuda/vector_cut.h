// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdint.h>

#include "kernels/causal_conv1d/cuda/arguments.h"

// Which calls the kernels of vector.cuh take, and how those share the work: by the shape alone, since the
// order of the sums of dweight and dbias, and with it their bits, depends on it.
namespace scankit::causal_conv1d {

enum class Rows { kOther, kSingle, kWhole };  // kOther: not for those kernels

// Below it places in a row, and tiles of a channel, are right in 32 bits.
inline constexpr Index kMostSteps = 1 << 30;

inline Index element_size(DType dtype) { return dtype == DType::F32 ? 4 : 2; }

inline bool has_states(const Forward& f) {
  return f.common.initial.data != nullptr || f.final.data != nullptr;
}
inline bool has_states(const Backward& b) {
  return b.common.initial.data != nullptr || b.dfinal.data != nullptr || b.dinitial.data != nullptr;
}

// Strides of a dimension of one may be anything.
template <class S>
bool has_whole_pieces(const S& signal, const Common& c) {
  const Index size = element_size(c.dtype), dim = c.dim > 1 ? signal.dim_stride * size : 0,
              batch = c.batch > 1 ? signal.batch_stride * size : 0;
  return reinterpret_cast<uintptr_t>(signal.data) % 16 == 0 && dim % 16 == 0 && batch % 16 == 0;
}

template <class... Signals>
Rows rows_of(const Common& c, const Signals&... signals) {
  const Index most_tiles = (c.length / 128 + 1) * Index{c.batch};  // a tile has 128 steps or more
  if (c.sequence != nullptr || c.batch < 1 || c.dim < 1 || c.length < 2 || c.length > kMostSteps ||
      most_tiles > kMostSteps || !(... && (signals.step_stride == 1)))
    return Rows::kOther;
  const bool whole = c.length * element_size(c.dtype) % 16 == 0 && (... && has_whole_pieces(signals, c));
  return whole ? Rows::kWhole : Rows::kSingle;
}

struct VectorCut {
  Tiles tiles;
  unsigned threads;  // of a block
};

// `warps`: how many a channel is to have. A block has 1, 2 or 4.
inline VectorCut share_out(const Common& c, Index all, Index warps, bool states) {
  const Index limit = Index{kMostParts} * kWarps;
  if (warps > limit) warps = limit;
  const Index of_block = warps > 2 ? kWarps : warps, parts = (warps + of_block - 1) / of_block;
  VectorCut cut = {};
  cut.tiles.row = static_cast<int>(all / c.batch);
  cut.tiles.warp = static_cast<int>((all + parts * of_block - 1) / (parts * of_block));
  cut.tiles.parts = static_cast<int>(parts);
  cut.tiles.states = states;
  cut.threads = static_cast<unsigned>(of_block * 32);
  return cut;
}

inline Index tiles_of_channel(const Common& c) {
  const Index tile = kTileBytes / element_size(c.dtype);
  return (c.length + tile - 1) / tile * c.batch;
}

// Enough warps to fill a large GPU twice; more tiles for each only beyond that, and up to eight.
inline VectorCut cut_forward(const Forward& f) {
  const Common& c = f.common;
  const Index all = tiles_of_channel(c);
  Index each = all * c.dim / kWarpsWanted;
  each = each < 1 ? 1 : each > 8 ? 8 : each;
  return share_out(c, all, (all + each - 1) / each, has_states(f));
}

// A warp has a tile's worth of work before and behind its tiles. One block a channel needs no slabs.
inline VectorCut cut_backward(const Backward& b) {
  const Common& c = b.common;
  const Index all = tiles_of_channel(c);
  Index each = all * c.dim / kWarpsWanted;
  if (each < 2) each = 2;
  Index warps = (all + each - 1) / each;
  if (warps > kWarps && Index{c.dim} * kWarps >= kWarpsWanted / 2) warps = kWarps;
  return share_out(c, all, warps, has_states(b));
}

// Bytes from behind the last tile of a row to the next batch's row.
template <class S>
Index jump_of(const S& signal, const Common& c, const Tiles& tiles) {
  return signal.batch_stride * element_size(c.dtype) - tiles.row * Index{kTileBytes};
}

}  // namespace scankit::causal_conv1d
