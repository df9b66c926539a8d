// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/general.cuh"

// The forward of general.cuh. All slices of a tile add to y, one after the other. With one slice its
// states stay in registers from tile to tile; with more, the others wait in shared memory, each
// thread its own, without a barrier.
namespace scankit::selective_scan {

template <class T, bool kComplex>
struct GeneralForward : General<T, kComplex> {
  using G = General<T, kComplex>;
  using N = Number<kComplex>;
  using G::c, G::place, G::lane, G::q, G::ch, G::kParts;

  float *dt, *w, *y, *kept;  // rows of the warp's channels; kept: states of all slices, a thread's own

  // Real part; an imaginary part is kGeneralThreads floats further. `kept` is the thread's own
  // first float.
  SCANKIT_DEVICE float* kept_number(int slice, int s) const {
    return kept + (slice * kGeneralPer + s) * kParts * kGeneralThreads;
  }

  // dt and w = dt u of the lane's piece to the warp's rows, zeros to y. u is returned for the epilogue.
  SCANKIT_DEVICE void prologue(int step, float bias, float (&u)[8]) const {
    if (!G::has_piece()) return;
    const int count = G::piece_count(step);
    Eight<T> delta;
    load_some(delta, G::piece_of(c.delta, step), count);
    float d[8], product[8], zero[8] = {};
    G::fetch(u, c.u, step);
    // Always the exact softplus: a complex decay turns by dt * Im(A), and an error of dt that 16-bit
    // results would hide moves the phase.
    discretize<true>(delta, bias, c.softplus, count, d);
#pragma unroll
    for (int j = 0; j < 8; ++j) product[j] = u[j] * d[j];
    write_eight(dt + G::piece_at(), d);
    write_eight(w + G::piece_at(), product);
    write_eight(y + G::piece_at(), zero);
  }

  // out = y + D u and out_z = out silu(z).
  SCANKIT_DEVICE void epilogue(const Forward& f, int step, float D, const float (&u)[8]) const {
    const int count = G::piece_count(step);
    if (count <= 0 || f.out.data == nullptr) return;
    float v[8];
    read_eight(y + G::piece_at(), v);
#pragma unroll
    for (int j = 0; j < 8 && c.D != nullptr; ++j) v[j] = fmaf(D, u[j], v[j]);
    G::store(f.out, v, step);
    if (c.z.data == nullptr) return;
    float z[8];
    G::fetch(z, c.z, step);
#pragma unroll
    for (int j = 0; j < 8; ++j) v[j] *= z[j] * sigmoid(z[j]);
    G::store(f.out_z, v, step);
  }

  // Where a slice's states wait while the others are scanned. Neighbouring threads have neighbouring
  // floats, so a warp's access is one wavefront of 128 bytes.
  SCANKIT_DEVICE void keep_number(const N& h, int slice, int s) const {
    kept_number(slice, s)[0] = h.re;
    if constexpr (kComplex) kept_number(slice, s)[kGeneralThreads] = h.im;
  }
  // What a lane has of one state. `exists`: a lane without one computes with zeros, of which an infinite
  // step makes NaN, which then must not get into y.
  struct State {
    Rate<kComplex> rate;
    N B, C, h;
    bool exists;
  };

  // One tile of one slice: adds to y, and moves the states on. kConstant: B, C or both are constant.
  template <bool kConstant>
  SCANKIT_DEVICE void scan(State (&states)[kGeneralPer]) const {
#pragma unroll 1
    for (int quad = 0; quad < 8; ++quad) {
      float dt4[4], w4[4], sum[4] = {};
      read_quad(dt + ch * kPitch, quad * 4, dt4);
      read_quad(w + ch * kPitch, quad * 4, w4);
#pragma unroll
      for (int s = 0; s < kGeneralPer; ++s) {
        State& v = states[s];
        N b[4], cs[4];
        G::template values<kConstant>(b, 0, v.B, G::own_state(s), quad);
        G::template values<kConstant>(cs, 1, v.C, G::own_state(s), quad);
#pragma unroll
        for (int t = 0; t < 4; ++t) {
          v.h = advance<kComplex>(decay<kComplex, T::kExact>(dt4[t], v.rate), v.h, w4[t], b[t]);
          if (!v.exists) continue;
          sum[t] = fmaf(cs[t].re, v.h.re, sum[t]);
          if constexpr (kComplex) sum[t] = fmaf(-cs[t].im, v.h.im, sum[t]);
        }
      }
      sum_lanes<kGeneralLanes>(sum, q);
      // y is 2 Re(C h). sum_lanes has left one sum in each lane.
      if constexpr (kComplex) sum[0] *= 2.0f;
      put_lanes<kGeneralLanes, true>(y + ch * kPitch, quad * 4, sum, q);
    }
  }

  // Saves a state behind its tile. Where sequences are not packed, the last chunk's row is twice as wide,
  // with the states at its odd places (SavedStates in params.h).
  SCANKIT_DEVICE void save(const SavedStates& x, int chunk, bool last, int state, const N& h) const {
    if (x.data == nullptr || !G::exists(state)) return;
    float* row =
        x.data + place.batch * x.batch_stride + (place.channel + ch) * x.dim_stride + chunk * x.chunk_stride;
    last = last && c.packed.cu_seqlens == nullptr;  // whose last rows are not wide
    if (last) store_number<kComplex>(row + 2 * state * kParts, {});
    store_number<kComplex>(row + (last ? 2 * state + 1 : state) * kParts, h);
  }

  // State s of a slice from where it waits, and its rate, which is computed again rather than kept.
  SCANKIT_DEVICE void load(State& v, int slice, int s) const {
    const int state = slice * kGeneralSlice + G::own_state(s);
    v.rate = make_rate<kComplex>(G::rate_of(state));
    v.exists = state < c.states;
    v.h.re = kept_number(slice, s)[0];
    if constexpr (kComplex) v.h.im = kept_number(slice, s)[kGeneralThreads];
  }

  // The numbers of a constant B or C for one state, read again for each tile and slice: registers are
  // scarcer than loads that hit the cache.
  SCANKIT_DEVICE void load_constants(State& v, int state) const {
    if (c.constant_B.data != nullptr) v.B = G::number_of(c.constant_B, state);
    if (c.constant_C.data != nullptr) v.C = G::number_of(c.constant_C, state);
  }

  // The sequence, tile by tile. Threads agree on its steps, so all of them reach every barrier.
  // Barriers: two a slice and tile, around the staging of B and C.
  SCANKIT_DEVICE void run(const ForwardArguments& p) const {
    const SavedStates x = general_states_of(c, p.forward.x, p.x_in_workspace, p.workspace);
    const int slices = (c.states + kGeneralSlice - 1) / kGeneralSlice;
    for (int slice = 0; slice < slices; ++slice) {
#pragma unroll
      for (int s = 0; s < kGeneralPer; ++s) {
        const N h = G::state_of(c.initial_state, slice * kGeneralSlice + G::own_state(s));
        keep_number(h, slice, s);
      }
    }
    const float bias = G::of_channel(c.delta_bias), D = G::of_channel(c.D);
    // A sequence without steps still has a last state.
    bool last = false;
    State states[kGeneralPer] = {};  // one slice's stay from tile to tile
    for (int step = G::begin, chunk = G::first_chunk(); !last; step += kTile, ++chunk) {
      last = G::end - step <= kTile;
      float u[8];
      prologue(step, bias, u);
      for (int slice = 0; slice < slices; ++slice) {
#pragma unroll
        for (int s = 0; s < kGeneralPer && (slices > 1 || step == G::begin); ++s) load(states[s], slice, s);
        // Between the barriers B and C are replaced: the first waits for the scans that read the old ones.
        __syncthreads();
        G::stage(slice * kGeneralSlice, step);
        __syncthreads();
        if (G::has_constant()) {
#pragma unroll
          for (int s = 0; s < kGeneralPer; ++s)
            load_constants(states[s], slice * kGeneralSlice + G::own_state(s));
          scan<true>(states);
        } else {
          scan<false>(states);
        }
#pragma unroll
        for (int s = 0; s < kGeneralPer; ++s) {
          const int state = slice * kGeneralSlice + G::own_state(s);
          if (slices > 1) keep_number(states[s].h, slice, s);
          save(x, chunk, last, state, states[s].h);
          if (last) G::store_state(p.forward.last_state, state, states[s].h);
        }
      }
      __syncwarp();
      epilogue(p.forward, step, D, u);
      __syncwarp();
    }
  }
};

// The body of scankit_general_forward_* (entry.cuh). grid.x: blocks as find_place has them, with the
// sequence in place of the batch entry where they are packed.
template <class T, bool kComplex>
SCANKIT_DEVICE void general_forward(const ForwardArguments& p) {
  using K = GeneralForward<T, kComplex>;
  extern __shared__ __align__(16) float memory[];
  K k{{p.forward.common, find_place(p.forward.common, p.tiling, kGeneralChannels)}};
  k.find_lane();
  k.find_steps();
  // Shared memory as general_floats in launch_general.cc counts it: B and C, each warp's rows of dt, w and
  // y, then the kept states, [slice][state][part][thread].
  k.projections = memory;
  k.dt = memory + 2 * K::kProjection + threadIdx.x / 32 * 3 * kGeneralChannels * kPitch;
  k.w = k.dt + kGeneralChannels * kPitch;
  k.y = k.w + kGeneralChannels * kPitch;
  k.kept = memory + 2 * K::kProjection + kGeneralWarps * 3 * kGeneralChannels * kPitch + threadIdx.x;
  k.run(p);
}

}  // namespace scankit::selective_scan
