// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/general_forward.cuh"

// The backward of general.cuh: within a tile the states at every fourth step are replayed, then the quads run
// in reverse, as in backward_tile.cuh. A block takes a run of channel tiles and adds their dB and dC up in
// its own slab, each number always by the same thread.
namespace scankit::selective_scan {

template <class T, bool kComplex>
struct GeneralBackward : General<T, kComplex> {
  using G = General<T, kComplex>;
  using N = Number<kComplex>;
  using G::c, G::place, G::lane, G::q, G::ch, G::kParts;
  static constexpr int kValues = 2 * kGeneralLanes * 4 * kParts;  // of a quad: [dB, dC][state][step][part]
  static_assert(kValues % kGeneralThreads == 0);

  const GeneralBackwardArguments& p;
  const Backward& g;
  int run;                     // of the group's runs
  float *dt, *w, *dy, *s, *r;  // rows of the warp's two channels
  float* kept;                 // [quad][part], a thread's own
  float* sums;                 // [2][warp][kValues]

  SCANKIT_DEVICE float* slab(Index offset) const {
    return reinterpret_cast<float*>(static_cast<char*>(p.workspace) + offset);
  }

  // Values of a lane with a piece, from one end of a tile to the other.
  struct Piece {
    float u[8], slope[8];
  };

  SCANKIT_DEVICE void ungate(float (&v)[8], int step) const {
    float z[8], out[8], dz[8];
    G::fetch(z, c.z, step);
    G::fetch(out, g.out, step);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float gate = sigmoid(z[j]), silu = z[j] * gate;
      dz[j] = v[j] * out[j] * gate * fmaf(z[j], 1.0f - gate, 1.0f);
      v[j] *= silu;
      out[j] *= silu;
    }
    G::store(g.dz, dz, step);
    if (g.out_z.data != nullptr) G::store(g.out_z, out, step);
  }

  SCANKIT_DEVICE void prologue(Piece& piece, float bias, int step) const {
    if (!G::has_piece()) return;
    const int count = G::piece_count(step);
    Eight<T> delta;
    float d[8], v[8], zero[8] = {};
    load_some(delta, G::piece_of(c.delta, step), count);
    T::unpack(delta.w, v);
#pragma unroll
    for (int j = 0; j < 8; ++j) piece.slope[j] = c.softplus ? sigmoid(v[j] + bias) : 1.0f;
    discretize<true>(delta, bias, c.softplus, count, d);
    G::fetch(piece.u, c.u, step);
    write_eight(dt + G::piece_at(), d);
#pragma unroll
    for (int j = 0; j < 8; ++j) d[j] *= piece.u[j];
    write_eight(w + G::piece_at(), d);
    G::fetch(v, g.dout, step);
    if (c.z.data != nullptr) ungate(v, step);
    write_eight(dy + G::piece_at(), v);
    write_eight(s + G::piece_at(), zero);
    write_eight(r + G::piece_at(), zero);
  }

  SCANKIT_DEVICE void epilogue(const Piece& piece, float D, float& dD, float& dbias, int step) const {
    const int count = G::piece_count(step);
    if (count <= 0) return;
    float input[8], rate[8], step_size[8], v[8];
    read_eight(s + G::piece_at(), input);
    read_eight(r + G::piece_at(), rate);
    read_eight(dt + G::piece_at(), step_size);
    read_eight(dy + G::piece_at(), v);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      rate[j] = fmaf(piece.u[j], input[j], rate[j]) * piece.slope[j];
      if (j < count) {
        dbias += rate[j];
        dD = fmaf(v[j], piece.u[j], dD);
      }
      input[j] *= step_size[j];
      if (c.D != nullptr) input[j] = fmaf(D, v[j], input[j]);
    }
    G::store(g.ddelta, rate, step);
    G::store(g.du, input, step);
  }

  // The states before the tile that starts at `step`.
  SCANKIT_DEVICE N load_start(int step, int state) const {
    if (step == G::begin) return G::state_of(c.initial_state, state);
    if (!G::exists(state)) return {};
    const SavedStates x = general_states_of(c, g.x, p.x_in_workspace, p.workspace);
    return load_number<kComplex>(x.data + place.batch * x.batch_stride + (place.channel + ch) * x.dim_stride +
                                 (G::first_chunk() + (step - G::begin) / kTile - 1) * x.chunk_stride +
                                 state * kParts);
  }

  // A slice's numbers that wait in the workspace, [sequence][pitch], for the tile before.
  SCANKIT_DEVICE float* waiting(Index offset, int state) const {
    return slab(offset) + G::entry * p.matrix_pitch +
           ((place.channel + ch) * Index{c.states} + state) * kParts;
  }
  SCANKIT_DEVICE N recall(Index offset, int state, bool first) const {
    if (first || !G::exists(state)) return {};
    return load_number<kComplex>(waiting(offset, state));
  }
  SCANKIT_DEVICE void keep(Index offset, int state, const N& v) const {
    if (G::exists(state)) store_number<kComplex>(waiting(offset, state), v);
  }

  SCANKIT_DEVICE void keep_quad(int quad, const N& h) const {
    kept[quad * kParts * kGeneralThreads] = h.re;
    if constexpr (kComplex) kept[(quad * kParts + 1) * kGeneralThreads] = h.im;
  }
  SCANKIT_DEVICE N quad_start(int quad) const {
    N h = {};
    h.re = kept[quad * kParts * kGeneralThreads];
    if constexpr (kComplex) h.im = kept[(quad * kParts + 1) * kGeneralThreads];
    return h;
  }

  struct Slice {
    N A, rate, B, C;  // rate: A with its real part times log2 e; B and C where constant
    N carry, dA, dB, dC;
  };

  SCANKIT_DEVICE void replay(const Slice& v, N h) const {
#pragma unroll 1
    for (int quad = 0; quad < 8; ++quad) {
      keep_quad(quad, h);
      float dt4[4], w4[4];
      N b[4];
      read_quad(dt + ch * kPitch, quad * 4, dt4);
      read_quad(w + ch * kPitch, quad * 4, w4);
      G::values(b, 0, c.constant_B, v.B, quad);
#pragma unroll
      for (int t = 0; t < 4; ++t) h = advance<kComplex>(decay<kComplex>(dt4[t], v.rate), h, w4[t], b[t]);
    }
  }

  // What of dB and dC a thread sums up: always of the same state and step of a quad.
  SCANKIT_DEVICE static int summed_state() { return threadIdx.x / (4 * kParts) % kGeneralLanes; }
  // The quads of a tile that hold the step; behind the sequence's end is another's place.
  SCANKIT_DEVICE int summed_quads(int first_state, int step) const {
    const int steps = G::end - step - static_cast<int>(threadIdx.x % (4 * kParts) / kParts);
    return first_state + summed_state() < c.states ? (steps + 3) / 4 : 0;
  }

  // dB and dC of a quad, of a channel that exists or 0, over the block's channels to the slab. All threads.
  SCANKIT_DEVICE void sum_channels(const N (&dB)[4], const N (&dC)[4], int first_state, int step, int quad,
                                   int quads, bool first) const {
    float* mine = sums + (quad % 2 * kGeneralWarps + threadIdx.x / 32) * kValues;
    const bool is_there = ch < place.channels;
#pragma unroll
    for (int which = 0; which < 2; ++which) {
#pragma unroll
      for (int t = 0; t < 4; ++t) {
        const N& v = which == 0 ? dB[t] : dC[t];
        float* to = mine + ((which * kGeneralLanes + q) * 4 + t) * kParts;
        const float re = is_there ? v.re : 0.0f, both = re + __shfl_xor_sync(0xffffffffu, re, 16);
        if (ch == 0) to[0] = both;
        if constexpr (kComplex) {
          const float im = is_there ? v.im : 0.0f, two = im + __shfl_xor_sync(0xffffffffu, im, 16);
          if (ch == 0) to[1] = two;
        }
      }
    }
    __syncthreads();
    if (quad >= quads) return;
    const int state = first_state + summed_state();
#pragma unroll
    for (int round = 0; round < kValues / kGeneralThreads; ++round) {
      const int i = round * kGeneralThreads + threadIdx.x, which = i / (kValues / 2);
      if ((which == 0 ? c.constant_B : c.constant_C).data != nullptr) continue;
      float sum = 0.0f;
      for (int warp = 0; warp < kGeneralWarps; ++warp)
        sum += sums[(quad % 2 * kGeneralWarps + warp) * kValues + i];
      const Index row = ((Index{run} * c.batch + place.batch) * c.groups + place.group) * c.states + state;
      float* to =
          slab(which == 0 ? p.dB : p.dC) + row * p.pitch + Index{step + quad * 4} * kParts + i % (4 * kParts);
      *to = first ? sum : *to + sum;
    }
  }

  SCANKIT_DEVICE void reverse(Slice& v, int first_state, int step, bool first) const {
    const int quads = summed_quads(first_state, step);
#pragma unroll 1
    for (int quad = 7; quad >= 0; --quad) {
      const bool is_state = first_state + q < c.states;
      float dt4[4], w4[4], dy4[4], input[4], rate[4];
      N b[4], cs[4], a[4], before[4], dB[4], dC[4];
      read_quad(dt + ch * kPitch, quad * 4, dt4);
      read_quad(w + ch * kPitch, quad * 4, w4);
      read_quad(dy + ch * kPitch, quad * 4, dy4);
      G::values(b, 0, c.constant_B, v.B, quad);
      G::values(cs, 1, c.constant_C, v.C, quad);
      N h = quad_start(quad);
#pragma unroll
      for (int t = 0; t < 4; ++t) {
        a[t] = decay<kComplex>(dt4[t], v.rate);
        before[t] = h;
        h = advance<kComplex>(a[t], h, w4[t], b[t]);
        dC[t].re = (kComplex ? 2.0f : 1.0f) * dy4[t] * h.re;
        if constexpr (kComplex) dC[t].im = -2.0f * dy4[t] * h.im;
      }
#pragma unroll
      for (int t = 3; t >= 0; --t) {
        N dh = {};
        dh.re = fmaf(cs[t].re, dy4[t], v.carry.re);
        if constexpr (kComplex) dh.im = fmaf(-cs[t].im, dy4[t], v.carry.im);
        dB[t].re = dh.re * w4[t];
        if constexpr (kComplex) dB[t].im = dh.im * w4[t];
        v.carry = times_conjugate<kComplex>(dh, a[t]);
        const N from_rate = times_conjugate<kComplex>(v.carry, before[t]);
        input[t] = is_state ? inner<kComplex>(dh, b[t], 0.0f) : 0.0f;
        rate[t] = is_state ? inner<kComplex>(from_rate, v.A, 0.0f) : 0.0f;
        v.dA.re = fmaf(dt4[t], from_rate.re, v.dA.re);
        v.dB.re += dB[t].re, v.dC.re += dC[t].re;
        if constexpr (kComplex) {
          v.dA.im = fmaf(dt4[t], from_rate.im, v.dA.im);
          v.dB.im += dB[t].im, v.dC.im += dC[t].im;
        }
      }
      sum_lanes<kGeneralLanes>(input, q);
      sum_lanes<kGeneralLanes>(rate, q);
      put_lanes<kGeneralLanes, true>(s + ch * kPitch, quad * 4, input, q);
      put_lanes<kGeneralLanes, true>(r + ch * kPitch, quad * 4, rate, q);
      sum_channels(dB, dC, first_state, step, quad, quads, first);
    }
  }

  SCANKIT_DEVICE void slice(int first_state, int step, bool last_tile, bool first) const {
    const int state = first_state + q;
    Slice v = {};
    v.A = v.rate = G::rate_of(state);
    v.rate.re *= kLog2E;
    if (c.constant_B.data != nullptr) v.B = G::number_of(c.constant_B, state);
    if (c.constant_C.data != nullptr) v.C = G::number_of(c.constant_C, state);
    v.carry = last_tile ? G::state_of(g.dlast_state, state) : recall(p.carry, state, false);
    v.dA = recall(p.dA, state, last_tile);
    if (c.constant_B.data != nullptr) v.dB = recall(p.dB, state, last_tile);
    if (c.constant_C.data != nullptr) v.dC = recall(p.dC, state, last_tile);
    __syncthreads();
    G::stage(first_state, step);
    __syncthreads();
    replay(v, load_start(step, state));
    reverse(v, first_state, step, first);
    keep(p.carry, state, v.carry);
    if (step == G::begin) G::store_state(g.dinitial_state, state, v.carry);
    keep(p.dA, state, v.dA);
    if (c.constant_B.data != nullptr) keep(p.dB, state, v.dB);
    if (c.constant_C.data != nullptr) keep(p.dC, state, v.dC);
  }

  // Sums of a channel's four pieces, to the sequence's slab.
  SCANKIT_DEVICE void store_channel_sum(float sum, Index offset) const {
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    if (G::has_piece() && lane % 4 == 0 && lane / 4 < place.channels)
      slab(offset)[G::entry * p.dim_pitch + place.channel + lane / 4] = sum;
  }

  // One tile of channels.
  SCANKIT_DEVICE void tile(bool first) const {
    const float bias = G::of_channel(c.delta_bias), D = G::of_channel(c.D);
    float dD = 0.0f, dbias = 0.0f;
    // A sequence without steps still has sums and a state's gradient.
    const int steps = G::end > G::begin ? G::end - G::begin : 1;
    for (int step = G::begin + (steps - 1) / kTile * kTile; step >= G::begin; step -= kTile) {
      Piece piece = {};
      prologue(piece, bias, step);
      for (int state = 0; state < c.states; state += kGeneralLanes)
        slice(state, step, G::end - step <= kTile, first);
      __syncwarp();
      epilogue(piece, D, dD, dbias, step);
      __syncwarp();
    }
    if (g.dD != nullptr) store_channel_sum(dD, p.dD);
    if (g.ddelta_bias != nullptr) store_channel_sum(dbias, p.dbias);
  }
};

template <class T, bool kComplex>
SCANKIT_DEVICE void general_backward(const GeneralBackwardArguments& p) {
  using K = GeneralBackward<T, kComplex>;
  extern __shared__ __align__(16) float memory[];
  const Backward& g = p.backward;
  const Common& c = g.common;
  K k{{c, {}}, p, g};
  k.find_lane();
  k.run = static_cast<int>(blockIdx.x % p.runs);
  k.place.group = static_cast<int>(blockIdx.x / p.runs % c.groups);
  k.place.batch = static_cast<int>(blockIdx.x / p.runs / c.groups);
  k.find_steps();
  k.projections = memory;
  k.dt = memory + 2 * K::kProjection + threadIdx.x / 32 * 10 * kPitch;
  k.w = k.dt + 2 * kPitch;
  k.dy = k.w + 2 * kPitch;
  k.s = k.dy + 2 * kPitch;
  k.r = k.s + 2 * kPitch;
  k.sums = memory + 2 * K::kProjection + kGeneralWarps * 10 * kPitch;
  k.kept = k.sums + 2 * kGeneralWarps * K::kValues + threadIdx.x;
  const int begin = k.run * p.tiles_per_run;
  for (int tile = begin; tile < begin + p.tiles_per_run && tile < p.tiling.tiles_per_group; ++tile) {
    const Index at = Index{tile} * kGeneralWarps * 2 + threadIdx.x / 32 * 2;
    const Index left = p.tiling.channels_per_group - at;
    k.place.channels = static_cast<int>(left < 0 ? 0 : left < 2 ? left : 2);
    k.place.channel =
        static_cast<int>(Index{k.place.group} * p.tiling.channels_per_group + (left > 0 ? at : 0));
    k.tile(tile == begin);
    __syncthreads();  // the next tile's warps overwrite sums and projections
  }
}

}  // namespace scankit::selective_scan
