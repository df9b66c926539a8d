// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/choice.h"

// A backward in rounds: launches one behind the other, each of some tiles, from the last ones on. dB and dC
// have slabs for the tiles of a round alone, and each round's sums are added to dA, dD and the bias gradient.
// It costs a launch and a reduction a round, and is for those who give time for memory: a backward that is
// given no states. What a round starts from are states that stand in du (kept_states.h), before its first
// tile; the gradient of its last state is what the round before it left in the workspace.
namespace scankit::selective_scan {

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
