// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/general.cuh"

namespace scankit::selective_scan {

template <class T, bool kComplex>
struct GeneralForward : General<T, kComplex> {
  using G = General<T, kComplex>;
  using N = Number<kComplex>;
  using G::c, G::place, G::lane, G::q, G::ch, G::kParts;

  float *dt, *w, *y, *kept;  // rows of the warp's two channels; kept: states of all slices, a thread's own

  SCANKIT_DEVICE float* kept_number(int slice) const { return kept + slice * kParts * kGeneralThreads; }

  SCANKIT_DEVICE void prologue(int step, float bias, float (&u)[8]) const {
    if (!G::has_piece()) return;
    const int count = G::piece_count(step);
    Eight<T> delta;
    load_some(delta, G::piece_of(c.delta, step), count);
    float d[8], product[8], zero[8] = {};
    G::fetch(u, c.u, step);
    // A complex rate turns by dt * Im(A): an error of dt that 16-bit results hide here moves the phase.
    discretize<true>(delta, bias, c.softplus, count, d);
#pragma unroll
    for (int j = 0; j < 8; ++j) product[j] = u[j] * d[j];
    write_eight(dt + G::piece_at(), d);
    write_eight(w + G::piece_at(), product);
    write_eight(y + G::piece_at(), zero);
  }

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

  // One tile of one slice.
  // is_state: a lane without one computes with zeros, of which an infinite step makes NaN.
  SCANKIT_DEVICE void scan(const N& A, const N& B, const N& C, bool is_state, N& h) const {
#pragma unroll 1
    for (int quad = 0; quad < 8; ++quad) {
      float dt4[4], w4[4], sum[4];
      N b[4], cs[4];
      read_quad(dt + ch * kPitch, quad * 4, dt4);
      read_quad(w + ch * kPitch, quad * 4, w4);
      G::values(b, 0, c.constant_B, B, quad);
      G::values(cs, 1, c.constant_C, C, quad);
#pragma unroll
      for (int t = 0; t < 4; ++t) {
        h = advance<kComplex>(decay<kComplex>(dt4[t], A), h, w4[t], b[t]);
        sum[t] = cs[t].re * h.re;
        if constexpr (kComplex) sum[t] = fmaf(-cs[t].im, h.im, sum[t]);
        if (!is_state) sum[t] = 0.0f;
      }
      sum_lanes<kGeneralLanes>(sum, q);
      put_lanes<kGeneralLanes, true>(y + ch * kPitch, quad * 4, sum, q);
    }
  }

  SCANKIT_DEVICE void save(const SavedStates& x, int chunk, bool last, int state, const N& h) const {
    if (x.data == nullptr || !G::exists(state)) return;
    float* row =
        x.data + place.batch * x.batch_stride + (place.channel + ch) * x.dim_stride + chunk * x.chunk_stride;
    last = last && c.packed.cu_seqlens == nullptr;  // whose last rows are not wide
    if (last) store_number<kComplex>(row + 2 * state * kParts, {});
    store_number<kComplex>(row + (last ? 2 * state + 1 : state) * kParts, h);
  }

  SCANKIT_DEVICE void run(const ForwardArguments& p) const {
    const SavedStates x = general_states_of(c, p.forward.x, p.x_in_workspace, p.workspace);
    const int slices = (c.states + kGeneralLanes - 1) / kGeneralLanes;
    for (int slice = 0; slice < slices; ++slice) {
      const N h = G::state_of(c.initial_state, slice * kGeneralLanes + q);
      kept_number(slice)[0] = h.re;
      if constexpr (kComplex) kept_number(slice)[kGeneralThreads] = h.im;
    }
    const float bias = G::of_channel(c.delta_bias), D = G::of_channel(c.D);
    // A sequence without steps still has a last state.
    bool last = false;
    for (int step = G::begin, chunk = G::first_chunk(); !last; step += kTile, ++chunk) {
      last = G::end - step <= kTile;
      float u[8];
      prologue(step, bias, u);
      for (int slice = 0; slice < slices; ++slice) {
        const int state = slice * kGeneralLanes + q;
        float* own = kept_number(slice);
        N A = G::rate_of(state), h = {}, B = {}, C = {};
        A.re *= kLog2E;
        if (c.constant_B.data != nullptr) B = G::number_of(c.constant_B, state);
        if (c.constant_C.data != nullptr) C = G::number_of(c.constant_C, state);
        h.re = own[0];
        if constexpr (kComplex) h.im = own[kGeneralThreads];
        __syncthreads();
        G::stage(slice * kGeneralLanes, step);
        __syncthreads();
        scan(A, B, C, state < c.states, h);
        own[0] = h.re;
        if constexpr (kComplex) own[kGeneralThreads] = h.im;
        save(x, chunk, last, state, h);
        if (last) G::store_state(p.forward.last_state, state, h);
      }
      __syncwarp();
      epilogue(p.forward, step, D, u);
      __syncwarp();
    }
  }
};

template <class T, bool kComplex>
SCANKIT_DEVICE void general_forward(const ForwardArguments& p) {
  using K = GeneralForward<T, kComplex>;
  extern __shared__ __align__(16) float memory[];
  K k{{p.forward.common, find_place(p.forward.common, p.tiling, 2)}};
  k.find_lane();
  k.find_steps();
  k.projections = memory;
  k.dt = memory + 2 * K::kProjection + threadIdx.x / 32 * 6 * kPitch;
  k.w = k.dt + 2 * kPitch;
  k.y = k.w + 2 * kPitch;
  k.kept = memory + 2 * K::kProjection + kGeneralWarps * 6 * kPitch + threadIdx.x;
  k.run(p);
}

}  // namespace scankit::selective_scan
