// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/ends.cuh"

// The recurrence over one tile, with a slice's states in registers, and saving the states that it
// ends with.
namespace scankit::selective_scan {

// Where states are saved: where the caller wants them, or at the start of the workspace, (batch, dim,
// tiles + 1, states), the last one's row twice as wide (SavedStates in params.h).
SCANKIT_DEVICE SavedStates states_of(const Common& c, const SavedStates& given, bool in_workspace,
                                     void* workspace) {
  if (!in_workspace) return given;
  const Index dim_stride = (tile_count(c.length) + 1) * c.states;
  return {static_cast<float*>(workspace), c.dim * dim_stride, dim_stride, c.states};
}

// One tile of one slice: h = exp2(dt A) h + w b and y = sum of c h, for each of a thread's channels and
// states, four steps (a quad) of all rows in registers at a time. `A` has log2 e in it. dt, w and y point
// at the row of the thread's first channel, b_row at that of its first state; C's rows are kSlice further.
// kAdd: y is added to, slice after slice. `steps`: of the tile, or more.
//
// The lanes of a channel read the same dt and w, which shared memory broadcasts, and each its own b and c.
// Sums over a lane's states are added up in registers before sum_lanes adds up the lanes.
template <class L, bool kAdd, class O, class H = AllVariable>
SCANKIT_DEVICE void scan_tile(float* dt, float* w, float* y, float* b_row,
                              const float (&A)[L::kChannels][L::kPer], float (&h)[L::kChannels][L::kPer],
                              int q, int steps, const H& held = {}) {
  float* c_row = b_row + L::kSlice * kPitch;
  constexpr int kQuads = O::kQuads ? O::kQuads : L::kQuads;
  // Steps behind the end have dt = 0 and w = 0 and change nothing: an unrolled loop takes them along.
  const int end = kQuads == 1 || steps > kTile ? kTile : steps;
#pragma unroll(kQuads == 1 ? 2 : 1)
  for (int step = 0; step < end; step += 4 * kQuads) {
    // All reads of dt and w before the first use: kQuads quads hide each other's waits.
    float dt4[kQuads][L::kChannels][4], w4[kQuads][L::kChannels][4], sum[kQuads][L::kChannels][4] = {};
#pragma unroll
    for (int i = 0; i < kQuads * L::kChannels; ++i) {
      const int quad = i / L::kChannels, ch = i % L::kChannels, row = ch * L::kGroups * kPitch;
      read_quad(dt + row, step + 4 * quad, dt4[quad][ch]);
      read_quad(w + row, step + 4 * quad, w4[quad][ch]);
    }
#pragma unroll
    for (int i = 0; i < kQuads * L::kPer; ++i) {
      const int quad = i / L::kPer, s = i % L::kPer;
      float b[4], c[4];
      if constexpr (!H::kB) read_quad(b_row + s * L::kLanes * kPitch, step + 4 * quad, b);
      if constexpr (!H::kC) read_quad(c_row + s * L::kLanes * kPitch, step + 4 * quad, c);
#pragma unroll
      for (int ch = 0; ch < L::kChannels; ++ch) {
        if constexpr (H::kB) held.fill_B(b, ch, s);
        if constexpr (H::kC) held.fill_C(c, ch, s);
#pragma unroll
        for (int t = 0; t < 4; ++t) {
          const float a = exp2_approx(dt4[quad][ch][t] * A[ch][s]);
          h[ch][s] = fmaf(a, h[ch][s], w4[quad][ch][t] * b[t]);
          sum[quad][ch][t] = fmaf(c[t], h[ch][s], sum[quad][ch][t]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kQuads * L::kChannels; ++i)
      sum_lanes<L::kLanes>(sum[i / L::kChannels][i % L::kChannels], q);
    // y may overwrite w: by now every lane of the channel has read its steps.
    if constexpr (L::kLanes > 1) __syncwarp();
#pragma unroll
    for (int i = 0; i < kQuads * L::kChannels; ++i) {
      const int quad = i / L::kChannels, ch = i % L::kChannels;
      put_lanes<L::kLanes, kAdd>(y + ch * L::kGroups * kPitch, step + 4 * quad, sum[quad][ch], q);
    }
  }
}

// Floats from x's data to a channel's row. odd_rows (kept_states.h): the strides count halves of a float,
// and a row begins with its first whole one.
SCANKIT_DEVICE Index states_row(const SavedStates& x, bool odd_rows, int batch, Index channel) {
  return (batch * x.batch_stride + channel * x.dim_stride + odd_rows) >> odd_rows;
}
// From one of a thread's channels to its next one. The distance is an even number of rows, so
// that halves make whole floats.
template <class L>
SCANKIT_DEVICE Index states_step(const SavedStates& x, bool odd_rows) {
  static_assert(L::kGroups % 2 == 0);
  return (L::kGroups * x.dim_stride) >> odd_rows;
}

// Where a thread's states of the next chunk go: its first channel's. null: nowhere.
struct SavePlace {
  float* next;
  Index of_channel, of_chunk;  // floats to its next channel and to the next chunk
  int whole;                   // not 0: all of its states and channels exist and can be written as vectors
};
// For the chunk that is saved first; `state`: the thread's first one. A vector needs the address and both
// strides to be multiples of its size, 4, 8 or 16 bytes for one, two or more states a lane.
// x is any tensor of the caller's, du among them (kept_states.h): nothing is assumed of its strides or
// where its rows start.
template <class L>
SCANKIT_DEVICE SavePlace save_place(const SavedStates& x, bool odd_rows, const Common& c, const Place& place,
                                    Index chunk, int group, int state) {
  SavePlace to = {x.data, states_step<L>(x, odd_rows), x.chunk_stride, false};
  if (to.next == nullptr) return to;
  to.next += states_row(x, odd_rows, place.batch, place.channel + group) + chunk * x.chunk_stride + state;
  to.whole = group + (L::kChannels - 1) * L::kGroups < place.channels && state + L::kPer <= c.states &&
             misalignment(to.next) % (L::kPer < 4 ? 4 * L::kPer : 16) == 0 &&
             to.of_channel % (L::kPer < 4 ? L::kPer : 4) == 0 &&
             to.of_chunk % (L::kPer < 4 ? L::kPer : 4) == 0;
  keep(to.whole);
  return to;
}
// Saves the states after a tile and moves on to the next chunk. `last`: in the last chunk's row, twice as
// wide, they go to the odd places and zeros to the even ones, as the interface has it.
// Called by all lanes of a warp, once a tile, after the tile's last step. The only writer of those places:
// no other block has this channel and chunk.
template <class L>
SCANKIT_DEVICE void save_states(SavePlace& x, const Common& c, const Place& place, bool last, int group,
                                int state, const float (&h)[L::kChannels][L::kPer]) {
  if (x.next == nullptr) return;
  if (x.whole && !last) {
#pragma unroll
    for (int ch = 0; ch < L::kChannels; ++ch) write_states(x.next + ch * x.of_channel, h[ch]);
  } else {
#pragma unroll
    for (int ch = 0; ch < L::kChannels; ++ch) {
      if (group + ch * L::kGroups >= place.channels) continue;
      float* to = x.next + ch * x.of_channel;
#pragma unroll
      for (int s = 0; s < L::kPer; ++s) {
        if (state + s >= c.states) continue;
        if (last) to[state + 2 * s] = 0.0f;
        to[last ? state + 2 * s + 1 : s] = h[ch][s];
      }
    }
  }
  x.next += x.of_chunk;
}

}  // namespace scankit::selective_scan
