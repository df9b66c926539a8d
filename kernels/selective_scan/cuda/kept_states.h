// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/arguments.h"

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

}  // namespace scankit::selective_scan
