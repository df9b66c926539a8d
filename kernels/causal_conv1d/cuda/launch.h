// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdint.h>

#include "kernels/causal_conv1d/cuda/arguments.h"
#include "kernels/causal_conv1d/params.h"
#include "kernels/common/driver_plan.h"

// Launch plans of the CUDA convolution. Links nothing but libc, so that the universal module can hold it.
namespace scankit::causal_conv1d {

// The table that Launch::kernel indexes; give it to device_register.
extern const device::KernelName kCudaKernels[];
extern const int kCudaKernelCount;

// Fill `plan`. False: the parameters cannot be run (message says which); they are assumed to have passed the
// binding's own checks of shapes, strides and types. Every element of every output is written, also where
// length or batch is 0.
bool plan_forward(const Forward& conv, device::Plan* plan, device::Message* message);
bool plan_backward(const Backward& conv, device::Plan* plan, device::Message* message);
bool plan_update(const Update& conv, device::Plan* plan, device::Message* message);

// Which calls the kernels of vector.cuh and of pairs.cuh take, and how those share the work: by the shape alone, since the
// order of the sums of dweight and dbias, and with it their bits, depends on it.

enum class Rows { kOther, kSingle, kWhole };  // kOther: not for those kernels

// Below it places in a row, and tiles of a channel, are right in 32 bits.
inline constexpr Index kMostSteps = 1 << 30;

inline Index element_size(DType dtype) { return dtype == DType::F32 ? 4 : 2; }

// Whether initial or final states, or their gradients, take part: the *_usual kernels know of none.
inline bool has_states(const Forward& f) {
  return f.common.initial.data != nullptr || f.final.data != nullptr;
}
inline bool has_states(const Backward& b) {
  return b.common.initial.data != nullptr || b.dfinal.data != nullptr || b.dinitial.data != nullptr;
}

// Whether every row starts at a 16-byte place. Strides of a dimension of one may be anything.
template <class S>
bool has_whole_pieces(const S& signal, const Common& c) {
  const Index size = element_size(c.dtype), dim = c.dim > 1 ? signal.dim_stride * size : 0,
              batch = c.batch > 1 ? signal.batch_stride * size : 0;
  return reinterpret_cast<uintptr_t>(signal.data) % 16 == 0 && dim % 16 == 0 && batch % 16 == 0;
}

// Which of the kernels of vector.cuh take the call, by all signals that they read and write in tiles.
template <class... Signals>
Rows rows_of(const Common& c, const Signals&... signals) {
  const Index most_tiles = (c.length / 128 + 1) * Index{c.batch};  // a tile has 128 steps or more
  if (c.sequence != nullptr || c.batch < 1 || c.dim < 1 || c.length < 2 || c.length > kMostSteps ||
      most_tiles > kMostSteps || !(... && (signals.step_stride == 1)))
    return Rows::kOther;
  const bool whole = c.length * element_size(c.dtype) % 16 == 0 && (... && has_whole_pieces(signals, c));
  return whole ? Rows::kWhole : Rows::kSingle;
}

// As is_usual of forward.cuh, on the host: what the kernels named so are compiled for.
inline bool takes_usual(const Common& c, bool states) { return c.width == kMaxWidth && c.silu && !states; }

struct VectorCut {
  Tiles tiles;
  unsigned threads;  // of a block
};

// `warps`: how many a channel is to have; `of_block`: and a block.
inline VectorCut share_out(const Common& c, Index all, Index warps, Index of_block, bool states) {
  if (warps > kMostParts * of_block) warps = kMostParts * of_block;
  const Index parts = (warps + of_block - 1) / of_block;
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

// Two tiles a warp, both asked for at once, and blocks that end soon: a warp that walks on loses 2 to 6 %. By
// single elements, with fewer on their way, up to eight, and enough warps to fill a large GPU twice.
inline VectorCut cut_forward(const Forward& f, Rows rows) {
  const Common& c = f.common;
  const Index all = tiles_of_channel(c);
  Index each = all * c.dim / kWarpsWanted;
  each = rows == Rows::kWhole ? kWholeTiles : each < 1 ? 1 : each > 8 ? 8 : each;
  const Index warps = (all + each - 1) / each;
  return share_out(c, all, warps, warps > 2 ? kWarps : warps, has_states(f));
}

// A warp has a tile's worth of work before and behind its tiles, and one block a channel needs no slabs. Of
// whole pieces sixteen tiles a warp: more would leave the GPU half idle when the last blocks end.
inline VectorCut cut_backward(const Backward& b, Rows rows) {
  const Common& c = b.common;
  const bool whole = rows == Rows::kWhole;
  const Index all = tiles_of_channel(c), most = whole ? kMostWarps : kWarps;
  Index each = all * c.dim / (whole ? kWarpsWanted / 2 : kWarpsWanted);
  if (whole && each > 16) each = 16;
  if (each < 2) each = 2;
  Index warps = (all + each - 1) / each;
  if (warps > most && Index{c.dim} * most >= kWarpsWanted / 2) warps = most;
  const Index of_block = warps > most ? kWarps : !whole && warps > 2 ? kWarps : warps;
  return share_out(c, all, warps, of_block, has_states(b));
}

// Bytes from behind the last tile of a row to the next batch's row.
template <class S>
Index jump_of(const S& signal, const Common& c, const Tiles& tiles) {
  return signal.batch_stride * element_size(c.dtype) - tiles.row * Index{kTileBytes};
}

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
