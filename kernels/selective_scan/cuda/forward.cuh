// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/ends.cuh"

// Forward: sequential in L, tile by tile; no parallel scan.
namespace scankit::selective_scan {

SCANKIT_DEVICE SavedStates states_of(const Common& c, const SavedStates& given, bool in_workspace,
                                     void* workspace) {
  if (!in_workspace) return given;
  const Index dim_stride = (tile_count(c.length) + 1) * c.states;
  return {static_cast<float*>(workspace), c.dim * dim_stride, dim_stride, c.states};
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

template <class T, class L, bool kSliced, class O>
struct ForwardKernel {
  using P = Projections<T, L>;
  static constexpr int kSubtiles = kSliced ? 1 : L::kSubtiles;
  static constexpr int kSpan = kSubtiles * kTile;  // steps from one barrier to the next
  // Pieces of B and C that a thread carries from one span to the next.
  static constexpr int kFewest = ForwardMemory<L, kSliced, O>::kFewestWarps * 32;
  static constexpr int kCarried = kSliced ? 1 : (kSubtiles * P::kCount + kFewest - 1) / kFewest;

  // A lane's pieces of the span, in registers.
  struct Loaded {
    Eight<T> u[L::kPieces], delta[L::kPieces];
    Eight<T> bc[kCarried];
  };

  const ForwardArguments& p;
  const Common& c;
  Place place;
  int lane, group, q;
  float *shared, *dt, *w, *y, *kept;  // kept: states of the slices not in registers
  // Piece 0 at step 0.
  const char *u_row, *delta_row, *z_row;
  char *out_row, *out_z_row;

  SCANKIT_DEVICE SavedStates states() const {
    return states_of(c, p.forward.x, p.x_in_workspace, p.workspace);
  }
  // Rows are subtile-major: row of piece i, its channel and its first step.
  SCANKIT_DEVICE int piece_row(int i) const { return (lane + 32 * i) / 4; }
  SCANKIT_DEVICE int piece_channel(int i) const { return piece_row(i) % L::kWarpChannels; }
  SCANKIT_DEVICE int piece_step(int i) const {
    return piece_row(i) / L::kWarpChannels * kTile + lane % 4 * 8;
  }
  SCANKIT_DEVICE int piece_at(int i) const { return piece_row(i) * kPitch + lane % 4 * 8; }
  // Steps of piece i that exist in the span which starts at `step`.
  SCANKIT_DEVICE int piece_count(int i, int step) const {
    return piece_channel(i) < place.channels ? c.length - step - piece_step(i) : 0;
  }
  // Bytes from piece 0 at step 0 to piece i at `step`. A warp with several pieces has them in one subtile.
  SCANKIT_DEVICE Index piece_offset(int i, int step, Index dim_stride) const {
    return (i * 8 * dim_stride + step) * T::kSize;
  }
  SCANKIT_DEVICE void find_rows() {
    static_assert(kSubtiles == 1 || L::kPieces == 1);
    const Index at = place.channel + piece_channel(0), bytes = piece_step(0) * Index{T::kSize};
    u_row = row_of<T>(c.u, place.batch, at) + bytes;
    delta_row = row_of<T>(c.delta, place.batch, at) + bytes;
    z_row = row_of<T>(c.z, place.batch, at) + bytes;
    out_row = row_of<T>(p.forward.out, place.batch, at) + bytes;
    out_z_row = row_of<T>(p.forward.out_z, place.batch, at) + bytes;
  }

  SCANKIT_DEVICE void load(Loaded& to, int step) const {
    if (p.aligned)
      load_as<true>(to, step);
    else
      load_as<false>(to, step);
  }
  template <bool kAligned>
  SCANKIT_DEVICE void load_as(Loaded& to, int step) const {
#pragma unroll
    for (int i = 0; i < L::kPieces; ++i) {
      load_piece<kAligned>(to.u[i], u_row + piece_offset(i, step, c.u.dim_stride), piece_count(i, step));
      load_piece<kAligned>(to.delta[i], delta_row + piece_offset(i, step, c.delta.dim_stride),
                           piece_count(i, step));
    }
  }
  SCANKIT_DEVICE void load_projections(Loaded& to, const char* const (&from)[kCarried], int step) const {
    if (p.aligned)
      load_projections_as<true>(to, from, step);
    else
      load_projections_as<false>(to, from, step);
  }
  template <bool kAligned>
  SCANKIT_DEVICE void load_projections_as(Loaded& to, const char* const (&from)[kCarried], int step) const {
#pragma unroll
    for (int k = 0; k < kCarried; ++k) {
      const int piece = threadIdx.x + k * blockDim.x, at = step + piece / P::kCount * kTile;
      if (piece < kSubtiles * P::kCount)
        load_piece<kAligned>(to.bc[k], from[k] + step * Index{T::kSize},
                             P::count_of(c, piece % P::kCount, 0) - at);
    }
  }
  SCANKIT_DEVICE void store_projections(const Loaded& from, float* to) const {
#pragma unroll
    for (int k = 0; k < kCarried; ++k) {
      const int piece = threadIdx.x + k * blockDim.x;
      if (piece < kSubtiles * P::kCount)
        P::store(to + piece / P::kCount * L::kProjections, piece % P::kCount, from.bc[k]);
    }
  }

  SCANKIT_DEVICE void prologue(const Loaded& from, const float (&bias)[L::kPieces], int step) const {
#pragma unroll
    for (int i = 0; i < L::kPieces; ++i) {
      float d[8], u[8];
      discretize<T::kExact>(from.delta[i], bias[i], c.softplus, piece_count(i, step), d);
      T::unpack(from.u[i].w, u);
#pragma unroll
      for (int j = 0; j < 8; ++j) u[j] *= d[j];
      write_eight(dt + piece_at(i), d);
      write_eight(w + piece_at(i), u);
    }
  }

  SCANKIT_DEVICE void load_z(Eight<T> (&z)[L::kPieces], int step) const {
    if (c.z.data == nullptr) return;
    if (p.aligned)
      load_z_as<true>(z, step);
    else
      load_z_as<false>(z, step);
  }
  template <bool kAligned>
  SCANKIT_DEVICE void load_z_as(Eight<T> (&z)[L::kPieces], int step) const {
#pragma unroll
    for (int i = 0; i < L::kPieces; ++i)
      load_piece<kAligned>(z[i], z_row + piece_offset(i, step, c.z.dim_stride), piece_count(i, step));
  }
  SCANKIT_DEVICE void epilogue(const Eight<T> (&from_u)[L::kPieces], const Eight<T> (&from_z)[L::kPieces],
                               const float (&D)[L::kPieces], int step) const {
    const Forward& f = p.forward;
    if (f.out.data == nullptr) return;
#pragma unroll
    for (int i = 0; i < L::kPieces; ++i) {
      const int count = piece_count(i, step);
      if (count <= 0) continue;
      float v[8], u[8];
      read_eight(y + piece_at(i), v);
      T::unpack(from_u[i].w, u);
#pragma unroll
      for (int j = 0; j < 8; ++j) v[j] = fmaf(D[i], u[j], v[j]);
      store_piece<T>(p.aligned, out_row + piece_offset(i, step, f.out.dim_stride), v, count);
      if (c.z.data == nullptr) continue;
      T::unpack(from_z[i].w, u);
#pragma unroll
      for (int j = 0; j < 8; ++j) v[j] *= u[j] * sigmoid(u[j]);
      store_piece<T>(p.aligned, out_z_row + piece_offset(i, step, f.out_z.dim_stride), v, count);
    }
  }

  SCANKIT_DEVICE void per_channel(float (&to)[L::kPieces], const float* from) const {
#pragma unroll
    for (int i = 0; i < L::kPieces; ++i) {
      const int channel = piece_channel(i);
      to[i] = from != nullptr && channel < place.channels ? from[place.channel + channel] : 0.0f;
    }
  }

  // All states in registers; u, delta, B and C of the next span are under way while this one is scanned.
  SCANKIT_DEVICE void run() {
    float bias[L::kPieces], D[L::kPieces], A[L::kChannels][L::kPer], h[L::kChannels][L::kPer];
    per_channel(bias, c.delta_bias);
    per_channel(D, c.D);
    load_A<L>(A, c, place, group, q * L::kPer);
    load_given<L>(h, c.initial_state, c, place, group, q * L::kPer);
    const char* projections[kCarried];
#pragma unroll
    for (int k = 0; k < kCarried; ++k) {
      const int piece = threadIdx.x + k * blockDim.x;
      projections[k] =
          P::place_of(c, place, piece % P::kCount, 0) + piece / P::kCount * Index{kTile * T::kSize};
    }
    const int first = segment_index() * p.segments.tiles * kTile;
    const int end = segment_index() + 1 < p.segments.count ? first + p.segments.tiles * kTile : c.length;
    if (segment_index() > 0) enter_segment<L, false>(h, A, p.segments, p.workspace, c, place, group, q);
    Loaded now;
    load(now, first);
    load_projections(now, projections, first);
    store_projections(now, shared + (first / kSpan & 1) * kSubtiles * L::kProjections);
    for (int step = first; step < end; step += kSpan) {
      float* bc = shared + (step / kSpan & 1) * kSubtiles * L::kProjections;
      float* next_bc = shared + ((step / kSpan & 1) ^ 1) * kSubtiles * L::kProjections;
      prologue(now, bias, step);
      Eight<T> u[L::kPieces], z[L::kPieces];
#pragma unroll
      for (int i = 0; i < L::kPieces; ++i) u[i] = now.u[i];
      load_z(z, step);
      const bool more = step + kSpan < end;
      if (more) load(now, step + kSpan);
      if (more) load_projections(now, projections, step + kSpan);
      __syncthreads();
#pragma unroll 1
      for (int sub = 0; sub < kSubtiles; ++sub) {
        const int rows = sub * L::kRows;
        scan_tile<L, false>(dt + rows, w + rows, w + rows, bc + sub * L::kProjections, A, h, group, q);
        const int next = step + (sub + 1) * kTile;
        if (next < c.length)
          save_states<L>(states(), c, place, next / kTile - 1, false, group, q * L::kPer, h);
      }
      if (more) store_projections(now, next_bc);
      __syncwarp();
      epilogue(u, z, D, step);
    }
    if (end < c.length) return;
    const Index chunks = tile_count(c.length);
    save_states<L>(states(), c, place, chunks > 0 ? chunks - 1 : 0, true, group, q * L::kPer, h);
    store_given<L>(p.forward.last_state, h, c, place, group, q * L::kPer);
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
    for (int slice = 0; slice < slices; ++slice) {
      float h[L::kChannels][L::kPer];
      load_given<L>(h, c.initial_state, c, place, group, slice * L::kSlice + q * L::kPer);
#pragma unroll
      for (int i = 0; i < L::kChannels * L::kPer; ++i)
        kept_state(slice, i / L::kPer, i % L::kPer) = h[i / L::kPer][i % L::kPer];
    }
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
        P::stage(shared, c, place, slice, step, p.aligned);
        __syncthreads();
        scan_tile<L, true>(dt, w, y, shared, A, h, group, q);
#pragma unroll
        for (int i = 0; i < L::kChannels * L::kPer; ++i)
          kept_state(slice, i / L::kPer, i % L::kPer) = h[i / L::kPer][i % L::kPer];
        save_states<L>(states(), c, place, chunk, chunk + 1 >= chunks, group, state, h);
        if (chunk + 1 >= chunks) store_given<L>(p.forward.last_state, h, c, place, group, state);
      }
      Eight<T> z[L::kPieces];
      load_z(z, step);
      __syncwarp();
      epilogue(now.u, z, D, step);
      __syncwarp();
    }
  }
};

template <class T, class L, bool kSliced, class O>
SCANKIT_DEVICE void forward_kernel(const ForwardArguments& p) {
  using K = ForwardKernel<T, L, kSliced, O>;
  using M = ForwardMemory<L, kSliced, O>;
  extern __shared__ __align__(16) float memory[];
  K k{p, p.forward.common, find_place(p.forward.common, p.tiling, L::kWarpChannels)};
  k.lane = threadIdx.x % 32;
  k.group = k.lane / L::kLanes;
  k.q = k.lane % L::kLanes;
  k.shared = memory;
  const int slices = (p.forward.common.states + L::kSlice - 1) / L::kSlice;  // 1 unless kSliced
  float* own = memory + M::kBlock + threadIdx.x / 32 * (M::kWarp + slices * M::kWarpSlice);
  k.dt = own;
  k.w = own + K::kSubtiles * L::kRows;
  k.y = kSliced ? k.w + L::kRows : k.w;
  k.find_rows();
  k.kept = own + M::kWarp;
  if constexpr (kSliced)
    k.run_sliced();
  else
    k.run();
}

}  // namespace scankit::selective_scan
