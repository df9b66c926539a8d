// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/tile.cuh"

// Forward: sequential in L, tile by tile; no parallel scan.
namespace scankit::selective_scan {

SCANKIT_DEVICE SavedStates states_of(const Common& c, const SavedStates& given, bool in_workspace,
                                     void* workspace) {
  if (!in_workspace) return given;
  const Index dim_stride = (tile_count(c.length) + 1) * c.states;
  return {static_cast<float*>(workspace), c.dim * dim_stride, dim_stride, c.states};
}

// dt and dt * u of eight steps, the first `count` of which exist. The others get dt = 0, which leaves the
// state alone.
template <class T>
SCANKIT_DEVICE void discretize(const Eight<T>& delta, float bias, bool soft, int count, float (&dt)[8]) {
  T::unpack(delta.w, dt);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    dt[i] += bias;
    if (soft) dt[i] = softplus<T::kExact>(dt[i]);
  }
  if (count < 8) {
#pragma unroll
    for (int i = 0; i < 8; ++i)
      if (i >= count) dt[i] = 0.0f;
  }
}

// One tile of one slice: dt and w (dt * u) are rows of the warp, y's rows receive the sums over the states.
template <class L, bool kAdd>
SCANKIT_DEVICE void scan_tile(float* dt, float* w, float* y, float* projections,
                              const float (&A)[L::kChannels][L::kPer], float (&h)[L::kChannels][L::kPer],
                              int group, int q) {
  float* b_row = projections + q * kPitch;
  float* c_row = b_row + L::kSlice * kPitch;
  constexpr int kQuads = L::kQuads;
#pragma unroll(kQuads == 1 ? 2 : 1)
  for (int step = 0; step < kTile; step += 4 * kQuads) {
    float dt4[kQuads][L::kChannels][4], w4[kQuads][L::kChannels][4], sum[kQuads][L::kChannels][4] = {};
#pragma unroll
    for (int i = 0; i < kQuads * L::kChannels; ++i) {
      const int quad = i / L::kChannels, ch = i % L::kChannels, row = (group + ch * L::kGroups) * kPitch;
      read_quad(dt + row, step + 4 * quad, dt4[quad][ch]);
      read_quad(w + row, step + 4 * quad, w4[quad][ch]);
    }
#pragma unroll
    for (int i = 0; i < kQuads * L::kPer; ++i) {
      const int quad = i / L::kPer, s = i % L::kPer;
      float b[4], c[4];
      read_quad(b_row + s * L::kLanes * kPitch, step + 4 * quad, b);
      read_quad(c_row + s * L::kLanes * kPitch, step + 4 * quad, c);
#pragma unroll
      for (int ch = 0; ch < L::kChannels; ++ch) {
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
    // y may overwrite w: every lane of the channel has read its steps.
    if constexpr (L::kLanes > 1) __syncwarp();
#pragma unroll
    for (int i = 0; i < kQuads * L::kChannels; ++i) {
      const int quad = i / L::kChannels, ch = i % L::kChannels;
      put_lanes<L::kLanes, kAdd>(y + (group + ch * L::kGroups) * kPitch, step + 4 * quad, sum[quad][ch], q);
    }
  }
}

// A of the thread's channels, scaled for exp2; 0 for states and channels that do not exist.
template <class L>
SCANKIT_DEVICE void load_A(float (&A)[L::kChannels][L::kPer], const Common& c, const Place& place, int group,
                           int state) {
#pragma unroll
  for (int ch = 0; ch < L::kChannels; ++ch) {
    const int channel = group + ch * L::kGroups;
#pragma unroll
    for (int s = 0; s < L::kPer; ++s) {
      const Index at = (place.channel + channel) * c.A_dim_stride + (state + s) * c.A_state_stride;
      A[ch][s] = channel < place.channels && state + s < c.states ? kLog2E * c.A[at] : 0.0f;
    }
  }
}

// Saves the states after a tile; after the last one they go to the odd places of a row twice as wide.
template <class L>
SCANKIT_DEVICE void save_states(const SavedStates& x, const Common& c, const Place& place, Index chunk,
                                bool last, int group, int state, const float (&h)[L::kChannels][L::kPer]) {
  if (x.data == nullptr) return;
#pragma unroll
  for (int ch = 0; ch < L::kChannels; ++ch) {
    const int channel = group + ch * L::kGroups;
    if (channel >= place.channels) continue;
    float* to = x.data + place.batch * x.batch_stride + (place.channel + channel) * x.dim_stride +
                chunk * x.chunk_stride;
    if (!last) {
      store_states<L::kPer>(to + state, h[ch], c.states - state);
      continue;
    }
#pragma unroll
    for (int s = 0; s < L::kPer; ++s) {
      if (state + s >= c.states) continue;
      to[2 * (state + s)] = 0.0f;
      to[2 * (state + s) + 1] = h[ch][s];
    }
  }
}

template <class T, class L, bool kSliced>
struct ForwardKernel {
  using P = Projections<T, L>;
  // Pieces of B and C that a thread carries from one tile to the next; blocks have at least 64 threads, or 32
  // where a slice has at most 4 states.
  static constexpr int kCarried = (P::kCount + 63) / 64;

  // A lane's pieces of the tile, in registers.
  struct Loaded {
    Eight<T> u[L::kPieces], delta[L::kPieces];
    Eight<T> bc[kSliced ? 1 : kCarried];
  };

  const ForwardArguments& p;
  const Common& c;
  Place place;
  int lane, group, q;
  float *shared, *dt, *w, *y, *kept;  // kept: states of the slices not in registers

  SCANKIT_DEVICE SavedStates states() const {
    return states_of(c, p.forward.x, p.x_in_workspace, p.workspace);
  }
  SCANKIT_DEVICE static int piece_channel(int lane, int i) { return (lane + 32 * i) / 4; }
  // Steps of piece i that exist at the tile which starts at `step`.
  SCANKIT_DEVICE int piece_count(int i, int step) const {
    if (piece_channel(lane, i) >= place.channels) return 0;
    return c.length - step - lane % 4 * 8;
  }

  SCANKIT_DEVICE void load(Loaded& to, int step) const {
#pragma unroll
    for (int i = 0; i < L::kPieces; ++i) {
      const Index channel = place.channel + piece_channel(lane, i),
                  at = (step + lane % 4 * 8) * Index{T::kSize};
      load_eight(to.u[i], row_of<T>(c.u, place.batch, channel) + at, piece_count(i, step));
      load_eight(to.delta[i], row_of<T>(c.delta, place.batch, channel) + at, piece_count(i, step));
    }
    if constexpr (!kSliced) {
#pragma unroll
      for (int k = 0; k < kCarried; ++k) {
        const int piece = threadIdx.x + k * blockDim.x;
        if (piece < P::kCount) P::load(to.bc[k], c, place, piece, 0, step);
      }
    }
  }
  SCANKIT_DEVICE void store_projections(const Loaded& from, float* to) const {
#pragma unroll
    for (int k = 0; k < kCarried; ++k) {
      const int piece = threadIdx.x + k * blockDim.x;
      if (piece < P::kCount) P::store(to, piece, from.bc[k]);
    }
  }

  SCANKIT_DEVICE void prologue(const Loaded& from, const float (&bias)[L::kPieces], int step) const {
#pragma unroll
    for (int i = 0; i < L::kPieces; ++i) {
      if (piece_channel(lane, i) >= L::kWarpChannels) continue;
      float d[8], u[8];
      discretize(from.delta[i], bias[i], c.softplus, piece_count(i, step), d);
      T::unpack(from.u[i].w, u);
#pragma unroll
      for (int j = 0; j < 8; ++j) u[j] *= d[j];
      const int at = piece_channel(lane, i) * kPitch + lane % 4 * 8;
      write_eight(dt + at, d);
      write_eight(w + at, u);
    }
  }

  SCANKIT_DEVICE void load_z(Eight<T> (&z)[L::kPieces], int step) const {
    if (c.z.data == nullptr) return;
#pragma unroll
    for (int i = 0; i < L::kPieces; ++i) {
      const Index channel = place.channel + piece_channel(lane, i),
                  at = (step + lane % 4 * 8) * Index{T::kSize};
      load_eight(z[i], row_of<T>(c.z, place.batch, channel) + at, piece_count(i, step));
    }
  }
  SCANKIT_DEVICE void epilogue(const Eight<T> (&from_u)[L::kPieces], const Eight<T> (&from_z)[L::kPieces],
                               const float (&D)[L::kPieces], int step) const {
    const Forward& f = p.forward;
    if (f.out.data == nullptr) return;
#pragma unroll
    for (int i = 0; i < L::kPieces; ++i) {
      const int count = piece_count(i, step);
      if (count <= 0) continue;
      const Index channel = place.channel + piece_channel(lane, i),
                  at = (step + lane % 4 * 8) * Index{T::kSize};
      float v[8], u[8];
      read_eight(y + piece_channel(lane, i) * kPitch + lane % 4 * 8, v);
      T::unpack(from_u[i].w, u);
#pragma unroll
      for (int j = 0; j < 8; ++j) v[j] = fmaf(D[i], u[j], v[j]);
      store_eight<T>(row_of<T>(f.out, place.batch, channel) + at, v, count);
      if (c.z.data == nullptr) continue;
      T::unpack(from_z[i].w, u);
#pragma unroll
      for (int j = 0; j < 8; ++j) v[j] *= u[j] * sigmoid(u[j]);
      store_eight<T>(row_of<T>(f.out_z, place.batch, channel) + at, v, count);
    }
  }

  SCANKIT_DEVICE void per_channel(float (&to)[L::kPieces], const float* from) const {
#pragma unroll
    for (int i = 0; i < L::kPieces; ++i) {
      const int channel = piece_channel(lane, i);
      to[i] = from != nullptr && channel < place.channels ? from[place.channel + channel] : 0.0f;
    }
  }

  // All states in registers; u, delta, B and C of the next tile are under way while this one is scanned.
  SCANKIT_DEVICE void run() {
    float bias[L::kPieces], D[L::kPieces], A[L::kChannels][L::kPer], h[L::kChannels][L::kPer] = {};
    per_channel(bias, c.delta_bias);
    per_channel(D, c.D);
    load_A<L>(A, c, place, group, q * L::kPer);
    Loaded now;
    load(now, 0);
    store_projections(now, shared);
    for (int step = 0; step < c.length; step += kTile) {
      float* bc = shared + (step / kTile & 1) * L::kProjections;
      float* next_bc = shared + (step / kTile & 1 ^ 1) * L::kProjections;
      prologue(now, bias, step);
      Eight<T> u[L::kPieces], z[L::kPieces];
#pragma unroll
      for (int i = 0; i < L::kPieces; ++i) u[i] = now.u[i];
      load_z(z, step);
      const bool last = step + kTile >= c.length;
      if (!last) load(now, step + kTile);
      __syncthreads();
      scan_tile<L, false>(dt, w, w, bc, A, h, group, q);
      if (!last) {
        save_states<L>(states(), c, place, step / kTile, false, group, q * L::kPer, h);
        store_projections(now, next_bc);
      }
      __syncwarp();
      epilogue(u, z, D, step);
    }
    const Index chunks = tile_count(c.length);
    save_states<L>(states(), c, place, chunks > 0 ? chunks - 1 : 0, true, group, q * L::kPer, h);
  }

  SCANKIT_DEVICE float& kept_state(int slice, int ch, int s) const {
    return kept[((slice * L::kChannels + ch) * L::kPer + s) * 32 + lane];
  }
  // Any number of states, a slice after the other within a tile; the states of the others wait in shared
  // memory.
  SCANKIT_DEVICE void run_sliced() {
    const int slices = (c.states + L::kSlice - 1) / L::kSlice;
    float bias[L::kPieces], D[L::kPieces];
    per_channel(bias, c.delta_bias);
    per_channel(D, c.D);
    for (int i = 0; i < slices * L::kChannels * L::kPer; ++i) kept[i * 32 + lane] = 0.0f;
    const Index chunks = tile_count(c.length);
    Loaded now;
    // A sequence without steps still has a last state.
    for (Index chunk = 0; chunk < (chunks > 0 ? chunks : 1); ++chunk) {
      const int step = static_cast<int>(chunk) * kTile;
      load(now, step);
      prologue(now, bias, step);
      for (int i = lane; i < L::kRows; i += 32) y[i] = 0.0f;
      for (int slice = 0; slice < slices; ++slice) {
        const int state = slice * L::kSlice + q * L::kPer;
        float A[L::kChannels][L::kPer], h[L::kChannels][L::kPer];
        load_A<L>(A, c, place, group, state);
#pragma unroll
        for (int i = 0; i < L::kChannels * L::kPer; ++i)
          h[i / L::kPer][i % L::kPer] = kept_state(slice, i / L::kPer, i % L::kPer);
        __syncthreads();
        P::stage(shared, c, place, slice, step);
        __syncthreads();
        scan_tile<L, true>(dt, w, y, shared, A, h, group, q);
#pragma unroll
        for (int i = 0; i < L::kChannels * L::kPer; ++i)
          kept_state(slice, i / L::kPer, i % L::kPer) = h[i / L::kPer][i % L::kPer];
        save_states<L>(states(), c, place, chunk, chunk + 1 >= chunks, group, state, h);
      }
      Eight<T> z[L::kPieces];
      load_z(z, step);
      __syncwarp();
      epilogue(now.u, z, D, step);
      __syncwarp();
    }
  }
};

template <class T, class L, bool kSliced>
SCANKIT_DEVICE void forward_kernel(const ForwardArguments& p) {
  using K = ForwardKernel<T, L, kSliced>;
  using M = ForwardMemory<L, kSliced>;
  extern __shared__ __align__(16) float memory[];
  K k{p, p.forward.common, find_place(p.forward.common, p.tiling, L::kWarpChannels)};
  k.lane = threadIdx.x % 32;
  k.group = k.lane / L::kLanes;
  k.q = k.lane % L::kLanes;
  k.shared = memory;
  const int slices = (p.forward.common.states + L::kSlice - 1) / L::kSlice;  // 1 unless kSliced
  float* own = memory + M::kBlock + threadIdx.x / 32 * (M::kWarp + slices * M::kWarpSlice);
  k.dt = own;
  k.w = own + L::kRows;
  k.y = kSliced ? k.w + L::kRows : k.w;
  k.kept = own + M::kWarp;
  if constexpr (kSliced)
    k.run_sliced();
  else
    k.run();
}

}  // namespace scankit::selective_scan
