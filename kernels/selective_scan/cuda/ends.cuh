// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/constant.cuh"

// The length cut into segments that run side by side (arguments.h). What leaves a piece of the length is
// linear in what enters it: for each channel and state
//   leaving = own + 2^(A sum of dt) entering
// where own is what the piece leaves from zero, A has log2 e in it, and the product of all decays is
// one exponential of the sum of dt. Forward, that is the state; backward, from right to left, the
// gradient that is carried. A kernel of its own finds own and the sum for each piece; a segment's block
// then joins the pieces before it (after it). discretize and the loads of A and of given states are
// here too, as all kernels need them.
namespace scankit::selective_scan {

// dt = delta + bias of each piece's eight steps, through softplus if `soft`. The flag is tested once for
// all elements, so that their special functions overlap.
template <bool kExact, int kPieces, class T>
SCANKIT_DEVICE void discretize(const Eight<T> (&delta)[kPieces], const float (&bias)[kPieces], bool soft,
                               float (&dt)[kPieces][8]) {
#pragma unroll
  for (int i = 0; i < kPieces; ++i) {
    T::unpack(delta[i].w, dt[i]);
#pragma unroll
    for (int j = 0; j < 8; ++j) dt[i][j] += bias[i];
  }
  if (!soft) return;
#pragma unroll
  for (int i = 0; i < kPieces * 8; ++i) dt[i / 8][i % 8] = softplus<kExact>(dt[i / 8][i % 8]);
}
// Zeroes the steps of a piece from `count` on, which do not exist: softplus(0 + bias) is not 0, and only
// dt = 0 leaves the state alone.
SCANKIT_DEVICE void end_piece(float (&dt)[8], int count) {
#pragma unroll
  for (int i = 0; i < 8; ++i)
    if (i >= count) dt[i] = 0.0f;
}
// The same for one piece, of which `count` steps exist.
template <bool kExact, class T>
SCANKIT_DEVICE void discretize(const Eight<T>& delta, float bias, bool soft, int count, float (&dt)[8]) {
  T::unpack(delta.w, dt);
#pragma unroll
  for (int i = 0; i < 8; ++i) dt[i] += bias;
  if (soft) {
#pragma unroll
    for (int i = 0; i < 8; ++i) dt[i] = softplus<kExact>(dt[i]);
  }
  if (count < 8) end_piece(dt, count);
}

// A of the thread's channels, times log2 e for exp2, from its first state `state` on; 0 for states and
// channels that do not exist, whose decay is then 1.
// group, state: the thread's first channel and first state (Layout). A has any strides, also 0: one A for
// all channels is an expanded tensor.
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

// The states that a sequence begins from or, in the backward, the gradient of its last ones: fp32, (batch,
// dim, states) with any strides but a unit last one. Zero where none are given.
template <class L>
SCANKIT_DEVICE void load_given(float (&v)[L::kChannels][L::kPer], const States& from, const Common& c,
                               const Place& place, int group, int state) {
#pragma unroll
  for (int ch = 0; ch < L::kChannels; ++ch) {
    const int channel = group + ch * L::kGroups;
    const float* at =
        from.data + place.batch * from.batch_stride + (place.channel + channel) * from.dim_stride + state;
    load_states<L::kPer>(v[ch], at, from.data != nullptr && channel < place.channels ? c.states - state : 0);
  }
}
// To a contiguous (batch, dim, states); null: not wanted.
template <class L>
SCANKIT_DEVICE void store_given(float* to, const float (&v)[L::kChannels][L::kPer], const Common& c,
                                const Place& place, int group, int state) {
  if (to == nullptr) return;
#pragma unroll
  for (int ch = 0; ch < L::kChannels; ++ch) {
    const int channel = group + ch * L::kGroups;
    if (channel >= place.channels) continue;
    const Index row = Index{place.batch} * c.dim + place.channel + channel;
    store_states<L::kPer>(to + row * c.states + state, v[ch], c.states - state);
  }
}

// The block's segment or, in the ends kernel, its piece, less the first one. No field of Place: it would
// be a register for all of the backward.
SCANKIT_DEVICE int segment_index() { return static_cast<int>(blockIdx.y); }

// What leaves a piece: own + carry 2^exponent. The power is taken in two halves, each a factor, since
// alone it may overflow or vanish where the product does not. A factor below 2^-126 would be flushed to
// zero, and zero times an infinite carry is NaN: hence the bound. A carry of zero stays zero, as it does
// step by step, even where the power is infinite.
SCANKIT_DEVICE float pass_piece(float carry, float exponent, float own) {
  const float half = 0.5f * exponent, factor = exp2_approx(half < -126.0f ? -126.0f : half);
  return carry == 0.0f ? own : fmaf(carry * factor, factor, own);
}

// A piece's ends, [batch][dim][states] fp32, and its sums of dt, [batch][dim], in the workspace.
// `ends` and `sums` are byte offsets from the workspace, multiples of 256 (reserve in launch_parts.h).
SCANKIT_DEVICE const float* ends_of(const Segments& s, const void* workspace, const Common& c,
                                    const Place& place, int piece) {
  const auto* all = reinterpret_cast<const float*>(static_cast<const char*>(workspace) + s.ends);
  return all + (Index{piece} * c.batch + place.batch) * c.dim * c.states;
}
SCANKIT_DEVICE const float* sums_of(const Segments& s, const void* workspace, const Common& c,
                                    const Place& place, int piece) {
  const auto* all = reinterpret_cast<const float*>(static_cast<const char*>(workspace) + s.sums);
  return all + (Index{piece} * c.batch + place.batch) * c.dim;
}

// Replaces v, what enters the whole length, by what enters the block's segment: passes it through the
// pieces before the segment (kReverse: after it), always in the same order. Forward v is the state,
// reverse the carried gradient. It costs an exponential a piece and state, however long the pieces are.
template <class L, bool kReverse>
SCANKIT_DEVICE void enter_segment(float (&v)[L::kChannels][L::kPer], const float (&A)[L::kChannels][L::kPer],
                                  const Segments& s, const void* workspace, const Common& c,
                                  const Place& place, int group, int q) {
  const int per_segment = s.tiles / s.tiles_per_piece;
  const int count = kReverse ? s.pieces - (segment_index() + 1) * per_segment : segment_index() * per_segment;
#pragma unroll 4
  for (int i = 0; i < count; ++i) {
    const int piece = kReverse ? s.pieces - 1 - i : i;
    const float* ends = ends_of(s, workspace, c, place, piece);
    const float* sums = sums_of(s, workspace, c, place, piece);
#pragma unroll
    for (int ch = 0; ch < L::kChannels; ++ch) {
      const int channel = group + ch * L::kGroups;
      if (channel >= place.channels) continue;
      float own[L::kPer];
      load_states<L::kPer>(own, ends + (place.channel + channel) * Index{c.states} + q * L::kPer,
                           c.states - q * L::kPer);
      const float sum = sums[place.channel + channel];
#pragma unroll
      for (int k = 0; k < L::kPer; ++k) v[ch][k] = pass_piece(v[ch][k], A[ch][k] * sum, own[k]);
    }
  }
}

// The end of one piece of the length from zero, and the sum of its dt.
//   forward:  h_t = a_t h_(t-1) + w_t B_t, w = dt u, first step to last; what leaves is h
//   reverse:  g_t = a_(t+1) g_(t+1) + C_t dy_t, last step to first; what leaves is a g of the first step
// with a = exp(dt A), and dy the gradient of y (dout, times silu(z) with a gate). There is no y, so no sum
// over lanes. Four lanes have a channel, four states each, a warp eight channels; for the element-wise
// work the same four lanes have eight steps each of the channel's tile. Blocks: channels in x as
// find_place has them, pieces in y.
//
// kConstant: B (forward) or C (reverse) is constant; the other one is not read.
template <class T, class L, bool kReverse, bool kConstant>
struct EndsKernel {
  using P = Projections<T, L>;
  static_assert(L::kChannels == 1 && L::kPieces == 1 && P::kCount / 2 <= kEndsWarps * 32);

  // What a lane has under way for the next tile: its piece of each row, and a thread's piece of B or C.
  struct Loaded {
    Eight<T> delta, other, z, projection;  // other: u or dout
  };

  const EndsArguments& p;
  const Common& c;
  Place place;
  int lane, group, q;
  float *shared, *dt, *x;

  // Steps that exist from the lane's piece of the tile at `step` on; 0 for a channel that does not exist.
  SCANKIT_DEVICE int count_at(int step) const {
    return lane / 4 < place.channels ? c.length - step - lane % 4 * 8 : 0;
  }
  // The lane's piece of the tile at `step`.
  template <bool kAligned>
  SCANKIT_DEVICE void fetch(Eight<T>& e, const Sequence& from, int step) const {
    load_piece<kAligned>(
        e, row_of<T>(from, place.batch, place.channel + lane / 4) + (step + lane % 4 * 8) * Index{T::kSize},
        count_at(step));
  }
  // `aligned` is the same for all threads, so this branch does not diverge; kAligned makes the loads free
  // of tests.
  SCANKIT_DEVICE void load(Loaded& to, int step) const {
    if (p.aligned)
      load_as<true>(to, step);
    else
      load_as<false>(to, step);
  }
  template <bool kAligned>
  SCANKIT_DEVICE void load_as(Loaded& to, int step) const {
    fetch<kAligned>(to.delta, c.delta, step);
    fetch<kAligned>(to.other, kReverse ? p.dout : c.u, step);
    if (kReverse && c.z.data != nullptr) fetch<kAligned>(to.z, c.z, step);
    const int piece = threadIdx.x;
    if (!kConstant && piece < P::kCount / 2)
      load_piece<kAligned>(
          to.projection,
          P::place_of(c, place, piece + (kReverse ? P::kCount / 2 : 0), 0) + step * Index{T::kSize},
          P::count_of(c, piece, 0) - step);
  }
  // Writes a tile's dt and x (w or dy) to the warp's rows and B or C to `projections`, and returns the sum
  // of the lane's eight dt. Steps behind the end add nothing: their dt is 0.
  SCANKIT_DEVICE float prologue(const Loaded& from, float bias, int step, float* projections) const {
    float d[8], v[8];
    discretize<T::kExact>(from.delta, bias, c.softplus, count_at(step), d);
    T::unpack(from.other.w, v);
    if (kReverse && c.z.data != nullptr) {
      float z[8];
      T::unpack(from.z.w, z);
#pragma unroll
      for (int j = 0; j < 8; ++j) v[j] *= z[j] * sigmoid(z[j]);
    }
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      if constexpr (!kReverse) v[j] *= d[j];
      sum += d[j];
    }
    write_eight(dt + lane / 4 * kPitch + lane % 4 * 8, d);
    write_eight(x + lane / 4 * kPitch + lane % 4 * 8, v);
    if (!kConstant && threadIdx.x < P::kCount / 2) P::store(projections, threadIdx.x, from.projection);
    return sum;
  }

  // One tile. `decay` is a of the step before (in reverse order: behind), which is multiplied in
  // before the next step is added.
  SCANKIT_DEVICE void scan(float* projections, const float (&A)[1][L::kPer],
                           const Constants<L, kConstant>& constants, float (&h)[L::kPer],
                           float (&decay)[L::kPer]) const {
#pragma unroll 2
    for (int i = 0; i < kTile / 4; ++i) {
      const int step = (kReverse ? kTile / 4 - 1 - i : i) * 4;
      float dt4[4], x4[4];
      read_quad(dt + group * kPitch, step, dt4);
      read_quad(x + group * kPitch, step, x4);
#pragma unroll
      for (int s = 0; s < L::kPer; ++s) {
        float b[4];
        if constexpr (kConstant)
          Held<L, true, true>::repeat(b, (kReverse ? constants.C : constants.B)[0][s]);
        else
          read_quad(projections + (s * L::kLanes + q) * kPitch, step, b);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int t = kReverse ? 3 - j : j;
          const float a = exp2_approx(dt4[t] * A[0][s]);
          h[s] = fmaf(kReverse ? decay[s] : a, h[s], x4[t] * b[t]);
          if constexpr (kReverse) decay[s] = a;
        }
      }
    }
  }

  // Every thread reaches every barrier: warps without channels compute with zeros until the end and store
  // nothing.
  SCANKIT_DEVICE void run() {
    float A[1][L::kPer], h[L::kPer] = {}, decay[L::kPer] = {}, sum = 0.0f;
    load_A<L>(A, c, place, group, q * L::kPer);
    Constants<L, kConstant> constants;
    if constexpr (kConstant) constants.load(c, place, group, q * L::kPer);
    const bool here = lane / 4 < place.channels;
    const float bias = c.delta_bias != nullptr && here ? c.delta_bias[place.channel + lane / 4] : 0.0f;
    const int piece = p.first + segment_index(), first = piece * p.segments.tiles_per_piece;
    const int left = static_cast<int>(tile_count(c.length)) - first;
    const int tiles = left < p.segments.tiles_per_piece ? left : p.segments.tiles_per_piece;
    const auto step_of = [&](int i) { return (first + (kReverse ? tiles - 1 - i : i)) * kTile; };
    Loaded now;
    load(now, step_of(0));
    for (int i = 0; i < tiles; ++i) {
      // Two buffers in turn, and one barrier a tile, as in the forward.
      float* projections = shared + (i & 1) * (L::kProjections / 2);
      sum += prologue(now, bias, step_of(i), projections);
      if (i + 1 < tiles) load(now, step_of(i + 1));
      __syncthreads();
      scan(projections, A, constants, h, decay);
      __syncwarp();  // the next prologue overwrites the rows
    }
    // Over the four lanes that have a channel's pieces.
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    if (here && lane % 4 == 0)
      const_cast<float*>(sums_of(p.segments, p.workspace, c, place, piece))[place.channel + lane / 4] = sum;
    if (group >= place.channels) return;
#pragma unroll
    for (int s = 0; s < L::kPer; ++s)
      // The first step's a is still missing.
      if constexpr (kReverse) h[s] *= decay[s];
    store_states<L::kPer>(const_cast<float*>(ends_of(p.segments, p.workspace, c, place, piece)) +
                              (place.channel + group) * Index{c.states} + q * L::kPer,
                          h, c.states - q * L::kPer);
  }
};

// The body of the ends kernels (entry.cuh), which the planner launches before a scan whose length is cut.
// grid.x: blocks as find_place has them; grid.y: pieces from p.first on. Dynamic shared memory: EndsMemory
// (layout.h). It needs __align__(16) for the 16-byte accesses: the default is that of the element type.
template <class T, bool kReverse, bool kConstant = false>
SCANKIT_DEVICE void ends_kernel(const EndsArguments& p) {
  using L = Layout<kEndsLanes, kEndsPer, 1>;
  using M = EndsMemory<L>;
  extern __shared__ __align__(16) float memory[];
  EndsKernel<T, L, kReverse, kConstant> k{p, p.common, find_place(p.common, p.tiling, L::kWarpChannels)};
  k.lane = threadIdx.x % 32;
  k.group = k.lane / L::kLanes;
  k.q = k.lane % L::kLanes;
  k.shared = memory;
  k.dt = memory + M::kBlock + threadIdx.x / 32 * M::kWarp;
  k.x = k.dt + L::kRows;
  k.run();
}

}  // namespace scankit::selective_scan
