// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/projections.cuh"
#include "kernels/selective_scan/cuda/step_lanes.cuh"

// The backward of few states, in the layout of step_lanes.cuh: a lane has eight steps of a channel. A
// tile's states, and then its gradients, are each found twice: from zero, for what a piece adds to what
// passes it, and from what enters it, which a scan over the four lanes of the channel gives (for the
// gradients from right to left).
//
// A warp has eight groups of four lanes, one channel each or more; dB and dC of a step are sums over these
// groups by shuffles, then over the warps in shared memory. There is one barrier every kTogether tiles.
namespace scankit::selective_scan {

// Sums the 16 values of each lane (dB of its eight steps, then dC) over the warp's eight groups of four
// lanes, always in the same order: at each level a lane gives away the half that its partner keeps, 8 + 4
// + 2 shuffles. A lane is left with two values, those from `first` on.
struct GroupSum {
  template <int kCount, int kDistance>
  SCANKIT_DEVICE static void add(float (&v)[16], int lane) {
    if constexpr (kDistance < 32) {
      constexpr int kHalf = kCount / 2;
      const bool upper = (lane & kDistance) != 0;
#pragma unroll
      for (int i = 0; i < kHalf; ++i) {
        const float send = upper ? v[i] : v[i + kHalf], keep = upper ? v[i + kHalf] : v[i];
        v[i] = keep + __shfl_xor_sync(0xffffffffu, send, kDistance);
      }
      add<kHalf, 2 * kDistance>(v, lane);
    }
  }
  SCANKIT_DEVICE static int first(int group) { return (group & 1) * 8 + (group & 2) * 2 + (group & 4) / 2; }
};

// A thread's object: p, g and c are the kernel's arguments, everything else registers, but for the table of
// rows and the sums, which are in shared memory (BackwardMemory<Layout<1, ...>>).
template <class T, class L>
struct StepLanesBackward {
  using M = BackwardMemory<L, false, Plain>;
  struct Loaded {
    Eight<T> dout[L::kChannels], u[L::kChannels], delta[L::kChannels], z[L::kChannels], out[L::kChannels];
    Eight<T> B[L::kPer], C[L::kPer];
    float h[L::kChannels][L::kPer];  // before the tile
  };
  struct State {  // of the channels; A is times log2 e
    float A[L::kChannels][L::kPer], carry[L::kChannels][L::kPer], dA[L::kChannels][L::kPer];
    float dD[L::kChannels], dbias[L::kChannels];
  };

  const BackwardArguments& p;
  const Backward& g;
  const Common& c;
  StepLanes<T, L> lanes;
  float *memory, *sums;  // the block's, and the warp's part of it
  // Where the rows begin, in bytes from their data, is in a table behind the warp's sums: in registers
  // they would take one in five. Offsets and not pointers: of a pointer from there the compiler would not
  // know that it is global memory's.
  enum Row { kDout, kU, kDelta, kZ, kOut, kDz, kDu, kDdelta, kB, kC, kStart };
  static_assert(kStart < M::kTable);

  SCANKIT_DEVICE StepLanesBackward(const BackwardArguments& arguments, float* shared)
      : p(arguments),
        g(p.backward),
        c(g.common),
        lanes(c, p.tiling),
        memory(shared),
        sums(shared + threadIdx.x / 32 * M::kWarp) {}

  // A row's entry in the table, shared by the four lanes of a channel: a read of one address by several
  // lanes is one access (CUDA Programming Guide, shared memory: broadcast).
  SCANKIT_DEVICE Index& row(Row which) const {
    return reinterpret_cast<Index*>(sums + 2 * M::kTogether * M::kSums)[which * 8 + lanes.group];
  }
  // One lane of the four of a channel writes its entries. kStart is the row of saved states, one chunk
  // early, so that tile k starts at chunk k.
  SCANKIT_DEVICE void find_rows() const {
    const SavedStates x = states_of(c, g.x, p.x_in_workspace, p.workspace);
    const Index rows[] = {
        lanes.row(g.dout),
        lanes.row(c.u),
        lanes.row(c.delta),
        lanes.row(c.z),
        lanes.row(g.out),
        lanes.row(g.dz),
        lanes.row(g.du),
        lanes.row(g.ddelta),
        lanes.row(c.B),
        lanes.row(c.C),
        states_row(x, p.x_odd_rows, lanes.place.batch, lanes.place.channel + lanes.group) - x.chunk_stride};
    if (lanes.q == 0) {
#pragma unroll
      for (int i = 0; i <= kStart; ++i) row(static_cast<Row>(i)) = rows[i];
    }
    __syncwarp();
  }
  // The lane's piece of the first tile.
  template <class S>
  SCANKIT_DEVICE auto piece(const S& of, Row which) const {
    return data_of(of) + row(which) + lanes.q * 8 * T::kSize;
  }

  template <bool kAligned>
  SCANKIT_DEVICE void load(Loaded& to, int step) const {
    lanes.template load<kAligned>(to.delta, c.delta, piece(c.delta, kDelta), step);
    lanes.template load<kAligned>(to.u, c.u, piece(c.u, kU), step);
    lanes.template load<kAligned>(to.dout, g.dout, piece(g.dout, kDout), step);
    lanes.template load<kAligned>(to.B, c.B, piece(c.B, kB), step);
    lanes.template load<kAligned>(to.C, c.C, piece(c.C, kC), step);
    if (c.z.data == nullptr) return;
    lanes.template load<kAligned>(to.z, c.z, piece(c.z, kZ), step);
    lanes.template load<kAligned>(to.out, g.out, piece(g.out, kOut), step);
  }
  // Prefetches what load() will read two tiles on; B and C are few and shared by all warps.
  SCANKIT_DEVICE void ask(int step) const {
    lanes.ask(c.delta, piece(c.delta, kDelta), step);
    lanes.ask(c.u, piece(c.u, kU), step);
    lanes.ask(g.dout, piece(g.dout, kDout), step);
    if (c.z.data == nullptr) return;
    lanes.ask(c.z, piece(c.z, kZ), step);
    lanes.ask(g.out, piece(g.out, kOut), step);
  }
  // The states before the tile at `step`; the four lanes of a channel read the same.
  SCANKIT_DEVICE void load_start(float (&h)[L::kChannels][L::kPer], int step) const {
    if (step == 0) return load_given<L>(h, c.initial_state, c, lanes.place, lanes.group, 0);
    const SavedStates x = states_of(c, g.x, p.x_in_workspace, p.workspace);
    const float* start = x.data + row(kStart) + step / kTile * x.chunk_stride;
#pragma unroll
    for (int i = 0; i < L::kChannels; ++i)
      load_states<L::kPer>(h[i], start + i * states_step<L>(x, p.x_odd_rows), lanes.has(i) ? c.states : 0);
  }
  SCANKIT_DEVICE void store(const SequenceOut& to, Row which, const float (&v)[8], int i, int step) const {
    if (lanes.count(i, step) > 0) lanes.store(to, piece(to, which), p.aligned, v, i, step);
  }

  // dy = dout silu(z), from dout in `dy`; writes dz = dout out silu'(z) and, if wanted, out_z =
  // out silu(z).
  SCANKIT_DEVICE void ungate(float (&dy)[8], const Eight<T>& from_z, const Eight<T>& from_out, int i,
                             int step) const {
    float z[8], out[8], dz[8];
    T::unpack(from_z.w, z);
    T::unpack(from_out.w, out);
#pragma unroll
    for (int t = 0; t < 8; ++t) {
      const float gate = sigmoid(z[t]), silu = z[t] * gate;
      dz[t] = dy[t] * out[t] * gate * fmaf(z[t], 1.0f - gate, 1.0f);
      dy[t] *= silu;
      out[t] *= silu;
    }
    store(g.dz, kDz, dz, i, step);
    if (g.out_z.data != nullptr && lanes.count(i, step) > 0)
      lanes.store(g.out_z, data_of(g.out_z) + lanes.row(g.out_z) + lanes.q * 8 * T::kSize, p.aligned, out, i,
                  step);
  }

  // One state of a channel's tile. h enters the tile forward and `carry` backward; carry and dA are
  // brought up to date, the same in the channel's four lanes for carry, a lane's part for dA. Adds the
  // lane's dB and dC to v, and to s and r what du and ddelta are made of: s = sum g B, r = sum A a g
  // h_(t-1), here with ln 2 in it (A has log2 e).
  SCANKIT_DEVICE void reverse(const Eight<T>& from_B, const Eight<T>& from_C, const float (&dt)[8],
                              const float (&u)[8], const float (&dy)[8], float sum, float h, float A,
                              float& carry, float& dA, float (&s)[8], float (&r)[8], float (&v)[16]) const {
    float B[8], C[8], a[8], before[8], x[8];
    T::unpack(from_B.w, B);
    T::unpack(from_C.w, C);
#pragma unroll
    for (int t = 0; t < 8; ++t) x[t] = dt[t] * u[t] * B[t];
    const float own = scan_piece(dt, x, A, a);
    float left = 0.0f;  // of the gradient, where nothing enters
#pragma unroll
    for (int t = 7; t >= 0; --t) left = a[t] * fmaf(C[t], dy[t], left);
    // The lane's real first state, and from it h of all its steps.
    h = enter_piece<false>(A * sum, own, h, lanes.q);
#pragma unroll
    for (int t = 0; t < 8; ++t) {
      before[t] = h;
      h = fmaf(a[t], h, x[t]);
      v[8 + t] = fmaf(dy[t], h, v[8 + t]);
    }
    // The gradient that enters the lane's last step.
    float passing = enter_piece<true>(A * sum, left, carry, lanes.q);
    const float slope = kLn2 * A;
#pragma unroll
    for (int t = 7; t >= 0; --t) {
      const float gradient = fmaf(C[t], dy[t], passing);
      v[t] = fmaf(gradient, dt[t] * u[t], v[t]);
      s[t] = fmaf(gradient, B[t], s[t]);
      passing = a[t] * gradient;
      const float part = passing * before[t];
      r[t] = fmaf(slope, part, r[t]);
      dA = fmaf(dt[t], part, dA);
    }
  }

  // A channel's tile: writes dz, du = D dy + dt s and ddelta = (u s + r) sigmoid(delta + bias), and adds
  // dB and dC to v.
  SCANKIT_DEVICE void tile(const Loaded& now, State& state, int i, int step, float (&v)[L::kPer][16]) const {
    const int count = lanes.count(i, step);
    const float bias = lanes.of_channel(c.delta_bias, i), D = lanes.of_channel(c.D, i);
    float dy[8], u[8], dt[8], s[8] = {}, r[8] = {};
    T::unpack(now.dout[i].w, dy);
    T::unpack(now.u[i].w, u);
    if (c.z.data != nullptr) ungate(dy, now.z[i], now.out[i], i, step);
    discretize<T::kExact>(now.delta[i], bias, c.softplus, count, dt);
    const float sum = sum_of(dt);
#pragma unroll
    for (int t = 0; t < 8; ++t) state.dD[i] = fmaf(dy[t], u[t], state.dD[i]);
#pragma unroll
    for (int n = 0; n < L::kPer; ++n)
      reverse(now.B[n], now.C[n], dt, u, dy, sum, now.h[i][n], state.A[i][n], state.carry[i][n],
              state.dA[i][n], s, r, v[n]);
#pragma unroll
    for (int t = 0; t < 8; ++t) {
      dy[t] = fmaf(dt[t], s[t], D * dy[t]);
      r[t] = fmaf(u[t], s[t], r[t]);
    }
    store(g.du, kDu, dy, i, step);
    if (c.softplus) {
      T::unpack(now.delta[i].w, dt);
#pragma unroll
      for (int t = 0; t < 8; ++t) r[t] *= sigmoid(dt[t] + bias);
    }
    store(g.ddelta, kDdelta, r, i, step);
    // Steps behind the end pass the last state's gradient on and have an r of their own: not for dbias.
    if (count < 8) end_piece(r, count);
    state.dbias[i] += sum_of(r);
  }

  // Adds up dB and dC of the last `tiles` tiles over the warps, in their order, and writes them. The first
  // of them was at `step` and is in place `place` of the ring; those after it are earlier in the row.
  SCANKIT_DEVICE void put_sums(int place, int tiles, int step) const {
    const int warps = blockDim.x / 32;
    for (int i = threadIdx.x; i < tiles * (M::kSums / 4); i += blockDim.x) {
      const int tile = i / (M::kSums / 4), at = i % (M::kSums / 4) * 4, value = at / kTile;
      if (value % L::kPer >= c.states) continue;
      float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 4
      for (int warp = 0; warp < warps; ++warp) {
        const float4 part = quad_at(memory + warp * M::kWarp + (place + tile) * M::kSums, at);
        sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
      }
      put_projection<T>(p, lanes.place, value / L::kPer, value % L::kPer, step - tile * kTile + at % kTile,
                        sum);
    }
  }

  // As in backward.cuh: with `direct` the offset is an address and the workspace is null.
  SCANKIT_DEVICE float* slab(Index offset) const {
    return reinterpret_cast<float*>(reinterpret_cast<Index>(p.workspace) + offset);
  }
  // Adds up a channel's number over its four lanes and, where at >= 0, writes it to the row of the block's
  // segment and batch entry. All lanes must call it, for the shuffles.
  SCANKIT_DEVICE void put_channel(float v, Index offset, Index pitch, Index at) const {
    v += __shfl_xor_sync(0xffffffffu, v, 1);
    v += __shfl_xor_sync(0xffffffffu, v, 2);
    if (at >= 0) slab(offset)[(Index{segment_index()} * c.batch + lanes.place.batch) * pitch + at] = v;
  }
  SCANKIT_DEVICE void put_channels(const State& state) const {
#pragma unroll
    for (int i = 0; i < L::kChannels; ++i) {
      const Index at = lanes.q == 0 && lanes.has(i) ? lanes.place.channel + lanes.channel(i) : -1;
      if (g.dD != nullptr) put_channel(state.dD[i], p.dD, p.dim_pitch, at);
      if (g.ddelta_bias != nullptr) put_channel(state.dbias[i], p.dbias, p.dim_pitch, at);
#pragma unroll
      for (int n = 0; n < L::kPer; ++n)
        put_channel(state.dA[i][n], p.dA, p.dA_pitch, n < c.states && at >= 0 ? at * c.states + n : -1);
    }
  }

  // The block's tiles from the last one to the first. put_sums needs all warps, so they meet every
  // kTogether tiles and at the end; in between they may drift apart.
  SCANKIT_DEVICE void run() {
    State state = {};
    const Place& place = lanes.place;
    find_rows();
    load_A<L>(state.A, c, place, lanes.group, 0);
    load_given<L>(state.carry, g.dlast_state, c, place, lanes.group, 0);
    const int chunks = static_cast<int>(tile_count(c.length)), first = segment_index() * p.segments.tiles;
    const int end = segment_index() + 1 < p.segments.count ? first + p.segments.tiles : chunks;
    device::wait_for_last();
    if (end < chunks)
      enter_segment<L, true>(state.carry, state.A, p.segments, p.workspace, c, place, lanes.group, 0);
    // Which two of its group's 16 sums a lane is left with: dB (below 8) or dC, and which of the
    // eight steps.
    const int own = GroupSum::first(lanes.group);
    for (int chunk = end - 1; chunk >= first; --chunk) {
      const int step = chunk * kTile, done = end - 1 - chunk;
      Loaded now;
      load_start(now.h, step);
      if (p.aligned)
        load<true>(now, step);
      else
        load<false>(now, step);
      if (step - lanes.kAhead >= first * kTile) ask(step - lanes.kAhead);
      __syncwarp();  // du overwrites the states that it is kept with (kept_states.h)
      float v[L::kPer][16] = {};
#pragma unroll
      for (int i = 0; i < L::kChannels; ++i) tile(now, state, i, step, v);
      // [dB, dC][state][step] of the tile, in a ring of 2 kTogether tiles.
      float* to = sums + done % (2 * M::kTogether) * M::kSums + lanes.q * 8 + own % 8;
#pragma unroll
      for (int n = 0; n < L::kPer; ++n) {
        GroupSum::add<16, 4>(v[n], threadIdx.x % 32);
        to[(own / 8 * L::kPer + n) * kTile] = v[n][0];
        to[(own / 8 * L::kPer + n) * kTile + 1] = v[n][1];
      }
      // The barrier is passed when all warps have filled one half of the ring. Nobody writes to that half
      // again before the next barrier: one is enough.
      const int together = done % M::kTogether + 1;
      if (together < M::kTogether && chunk > first) continue;
      __syncthreads();
      put_sums(done % (2 * M::kTogether) + 1 - together, together, step + (together - 1) * kTile);
    }
    if (first == 0 && lanes.q == 0) store_given<L>(g.dinitial_state, state.carry, c, place, lanes.group, 0);
    put_channels(state);
  }
};

}  // namespace scankit::selective_scan
