// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/arguments.h"
#include "kernels/selective_scan/cuda/choice.h"

// A backward that is given no states has a forward find them, and keeps them in du: nobody has written that
// yet, and a tile's du has room for the states of its channel.
//
// A block goes through its tiles from the last to the first, and in each there is a barrier of the warp
// between the reading of states and the writing of du. So what a tile starts from may stand in the tile's own
// du, or in that of the tile before, as long as the same block writes it. Where the length is cut another
// block may do so at the same time: states then stand in the tile's own du, of which the last one must have
// room, too. Where it is not cut they stand in the tile before, which is always a whole one.
namespace scankit::selective_scan {

struct KeptStates {
  SavedStates x;  // data null: they do not fit
  bool odd_rows;  // as the arguments have it
};

// No two rows of du overlap, by its strides. Says no where it is not sure: the states then take
// a workspace.
inline bool rows_are_apart(const SequenceOut& du, const Common& c) {
  const Index dims = (c.dim - 1) * du.dim_stride + c.length;
  const Index batches = (c.batch - 1) * du.batch_stride + c.length;
  const bool by_dim = c.dim == 1 || du.dim_stride >= c.length;
  const bool by_batch = c.batch == 1 || du.batch_stride >= c.length;
  return by_dim && by_batch &&
         (c.batch == 1 || c.dim == 1 || du.batch_stride >= dims || du.dim_stride >= batches);
}

// Where the states go in du; no place if they do not fit. `cut`: the backward's length is cut into
// segments. Rows that start at odd 16-bit places get strides in half numbers (x_odd_rows of the
// arguments), and their states begin one element late.
inline KeptStates states_in_du(const Backward& b, bool cut) {
  const Common& c = b.common;
  const Index size = c.dtype == DType::F32 ? 4 : 2, number = sizeof(float);
  const Index tile = kStateInterval * size, states = c.states * number;
  if (!b.du.data || reinterpret_cast<Index>(b.du.data) % number != 0 || !rows_are_apart(b.du, c)) return {};
  const bool odd = (c.batch > 1 && b.du.batch_stride * size % number != 0) ||
                   (c.dim > 1 && b.du.dim_stride * size % number != 0);
  // An odd row's begin one element late.
  const Index last = (c.length - (chunk_count(c.length) - 1) * kStateInterval) * size;
  if (states > tile || (cut && states + (odd ? size : 0) > last)) return {};
  const auto stride = [&](Index elements) { return odd ? elements : elements * size / number; };
  float* first = static_cast<float*>(b.du.data) + (cut ? tile / number : 0);
  return {{first, stride(b.du.batch_stride), stride(b.du.dim_stride), tile / number}, odd};
}

// A backward in rounds: launches one behind the other, each of some tiles, from the last ones on. dB and dC
// have slabs for the tiles of a round alone, and each round's sums are added to dA, dD and the bias gradient.
// It costs a launch and a reduction a round, and is for those who give time for memory: a backward that is
// given no states. What a round starts from are states that stand in du, before its first
// tile; the gradient of its last state is what the round before it left in the workspace.
inline constexpr int kRounds = 4;
inline constexpr Index kSlabsInOneRound = 4 << 20;  // bytes of dB's and dC's slabs that are not worth more

// The steps [first, first + count) of every sequence, as a problem of its own; whole tiles, but for the
// last one. Rows have unit stride, so every pointer moves on by `first` elements. The states saved
// before the part become its initial state, with x's strides. dA, dD and the bias gradient stay the
// whole's. The caller sets the gradients that are carried in and out, and needs `whole.x` to be a
// pointer (add_rounds in launch.cc).
inline Backward part_of(const Backward& whole, Index first, Index count) {
  const Index size = whole.common.dtype == DType::F32 ? 4 : 2, bytes = first * size;
  Backward part = whole;
  Common& c = part.common;
  c.length = static_cast<int>(count);
  const auto move_in = [&](const void*& data) {
    if (data) data = static_cast<const char*>(data) + bytes;
  };
  const auto move_out = [&](void*& data) {
    if (data) data = static_cast<char*>(data) + bytes;
  };
  move_in(c.u.data), move_in(c.delta.data), move_in(c.z.data), move_in(c.B.data), move_in(c.C.data);
  move_in(part.dout.data), move_in(part.out.data);
  move_out(part.du.data), move_out(part.ddelta.data), move_out(part.dz.data), move_out(part.out_z.data);
  move_out(part.rounded_dB), move_out(part.rounded_dC);
  if (part.dB) part.dB += first;
  if (part.dC) part.dC += first;
  const Index tiles = first / kStateInterval;
  if (tiles > 0) {
    const float* before = part.x.data + (tiles - 1) * part.x.chunk_stride;
    c.initial_state = {before, part.x.batch_stride, part.x.dim_stride};
    part.x.data += tiles * part.x.chunk_stride;
  }
  return part;
}

}  // namespace scankit::selective_scan
