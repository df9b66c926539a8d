// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/state_loop_tile.cuh"

// The backward of up to 16 states with steps over lanes (step_lanes.cuh): of a channel's tile each of four
// lanes has eight steps, and takes the states one after the other. dt, w, dy, s and r of its steps stay in
// registers for all of them, so no row crosses shared memory, no sum over the states needs a shuffle, and
// nothing is replayed: with the state before the tile, a lane has a[8], x = w B [8] and C dy [8] at once.
//
// Per state: what the lane's steps make of nothing, forward (e) and backward (c); what enters them, from
// both scans over the four lanes together (enter); the recurrences again from that. The state's dB and dC
// are summed over the warp's channels by shuffles (ChannelSum: four states at a time, in an order that
// depends on the lane), and over the warps in shared memory.
//
// A tile has two barriers. What the tile before reads is asked for before the loop over the states, and comes
// in copies, most of fp32's to the L2 cache alone: this is for rows of whole quads (`halves`), or for 16-bit
// ones at odd places in a variant of its own.
namespace scankit::selective_scan {

template <class T, class L, class Memory = BackwardMemory<L, false, Plain>>
struct StateLoopBackward : StateLoopTile<T, L, Memory> {
  using Tile = StateLoopTile<T, L, Memory>;
  using typename Tile::M, typename Tile::Quarter;
  using Sum = ChannelSum<Layout<4, 4, 1>, 16>;
  using Tile::find_rows, Tile::piece, Tile::ask_for, Tile::load_start, Tile::fetch, Tile::fetch_again,
      Tile::store, Tile::stage;
  using Tile::kCount, Tile::kTogether;
  using Tile::kDout, Tile::kU, Tile::kDelta, Tile::kZ, Tile::kOut, Tile::kDz, Tile::kDu, Tile::kDdelta,
      Tile::kOutZ;
  using Tile::kept, Tile::A_at, Tile::keep_first, Tile::keep_start, Tile::read_halves, Tile::read_kept,
      Tile::write_kept;
  using Tile::p, Tile::g, Tile::c, Tile::lanes, Tile::memory, Tile::own, Tile::lane;
  using Tile::put_sums, Tile::put_channel, Tile::put_states;

  // Of the lane's eight steps. `half` is half the sum of dt over the steps that the lane passes on
  // (enter).
  struct Steps {
    float dt[kCount][8], w[kCount][8], dy[kCount][8], s[kCount][8], r[kCount][8], half[kCount];
  };

  SCANKIT_DEVICE StateLoopBackward(const BackwardArguments& arguments, float* shared)
      : Tile(arguments, shared) {}

  // dy = dout silu(z), from dout in `dy`; writes dz = dout out silu'(z) and, if wanted, out_z = out silu(z),
  // unless another warp does (`writes`).
  SCANKIT_DEVICE void ungate(float (&dy)[8], int i, int step, bool writes) const {
    float z[8], out[8], dz[8];
    fetch(z, kZ, i, step);
    fetch(out, kOut, i, step);
#pragma unroll
    for (int t = 0; t < 8; ++t) {
      const float gate = sigmoid(z[t]), silu = z[t] * gate;
      dz[t] = dy[t] * out[t] * gate * fmaf(z[t], 1.0f - gate, 1.0f);
      dy[t] *= silu;
      out[t] *= silu;
    }
    if (!writes) return;
    store(piece(g.dz, kDz, i, step), dz, i, step);
    if (g.out_z.data != nullptr) store(piece(g.out_z, kOutZ, i, step), out, i, step);
  }

  // dt, w and dy of the lane's steps; adds to the channels' dD.
  SCANKIT_DEVICE void prologue(Steps& now, float (&dD)[kCount], int step, bool writes = true) const {
    const bool outer = lanes.q == 0 || lanes.q == 3;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      // fp32's come from global memory, all at once: behind a store the compiler would not move them forward.
      if constexpr (M::kDirect) fetch(now.dt[i], kDelta, i, step), fetch(now.w[i], kU, i, step);
      fetch(now.dy[i], kDout, i, step);
      if (c.z.data != nullptr) ungate(now.dy[i], i, step, writes);
      if constexpr (!M::kDirect) fetch(now.dt[i], kDelta, i, step), fetch(now.w[i], kU, i, step);
      const float bias = lanes.of_channel(c.delta_bias, i);
#pragma unroll
      for (int t = 0; t < 8; ++t) now.dt[i][t] += bias;
      if (c.softplus) {
#pragma unroll
        for (int t = 0; t < 8; ++t) now.dt[i][t] = softplus<T::kExact>(now.dt[i][t]);
      }
      const int count = lanes.count(i, step);
      if (count < 8) end_piece(now.dt[i], count);
#pragma unroll
      for (int t = 0; t < 8; ++t) {
        dD[i] = fmaf(now.dy[i][t], now.w[i][t], dD[i]);
        now.w[i][t] *= now.dt[i][t];
        now.s[i][t] = now.r[i][t] = 0.0f;
      }
      const float sum = sum_of(now.dt[i]), next = __shfl_xor_sync(0xffffffffu, sum, 1);
      now.half[i] = 0.5f * (outer ? next : sum);
    }
  }

  // du = D dy + dt s and ddelta = (u s + ln2 r) sigmoid(delta + bias).
  SCANKIT_DEVICE void epilogue(const Steps& now, float (&dbias)[kCount], int step) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int count = lanes.count(i, step);
      const float bias = lanes.of_channel(c.delta_bias, i), D = lanes.of_channel(c.D, i);
      float v[8], delta[8];
      fetch_again(v, kU, i, step);
      fetch_again(delta, kDelta, i, step);
#pragma unroll
      for (int t = 0; t < 8; ++t) v[t] = fmaf(kLn2, now.r[i][t], v[t] * now.s[i][t]);
      if (c.softplus) {
#pragma unroll
        for (int t = 0; t < 8; ++t) v[t] *= sigmoid(delta[t] + bias);
      }
      // Steps behind the end pass the last state's gradient on, so that their r and s need not be 0.
      if (count < 8) end_piece(v, count);
      dbias[i] += sum_of(v);
      store(piece(g.ddelta, kDdelta, i, step), v, i, step);
#pragma unroll
      for (int t = 0; t < 8; ++t) v[t] = fmaf(now.dt[i][t], now.s[i][t], D * now.dy[i][t]);
      store(piece(g.du, kDu, i, step), v, i, step);
    }
  }

  // What enters a lane's eight steps: h forward, `grad` backward. `enters` is what the lane keeps (kept); e
  // and c leave its steps where that enters lanes 0 and 3, and nothing the others (lane 3's e, lane 0's c
  // mean nothing). Two exchanges do both scans: neighbours give what they send on (even lanes e, odd ones
  // c); then lanes 1 and 2 have what leaves the two lanes on their side and give it to the other pair, which
  // passes it through the lane between. factor^2 is the product of the decays of the lane's own steps
  // (lanes 1 and 2) or of its neighbour's.
  SCANKIT_DEVICE void enter(float e, float c, float enters, float factor, float& h, float& grad) const {
    const int q = lanes.q;
    const bool odd = (q & 1) != 0, low = q < 2, outer = q == 0 || q == 3;
    const float near = __shfl_xor_sync(0xffffffffu, odd ? c : e, 1);
    const float passed = fmaf(near * factor, factor, odd ? e : c);
    const float far = __shfl_sync(0xffffffffu, passed, low ? 2 : 1, 4);
    const float through = fmaf(far * factor, factor, near);
    const float one = outer ? through : far, other = outer ? enters : near;
    h = low ? other : one;
    grad = low ? one : other;
  }

  // A state's tile, in place `slot`: adds to s and r, and dB and dC of the lane's steps to `to`.
  SCANKIT_DEVICE void state(Steps& now, int slot, const float* rows, float (&to)[16]) const {
    float B[8], C[8], dA[kCount], enters[kCount], A[kCount], leaves[kCount];
    float a[kCount][8], x[kCount][8], cd[kCount][8], h[kCount];
    read_halves(rows, B);
    read_halves(rows + 16 * M::kPitch, C);
    float* mine = kept(slot, lane);
    read_kept(mine, dA, enters);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      A[i] = A_at(slot)[i];
      // A factor of infinity is held back: zero times it must stay zero.
      const float factor = exp2_approx(fminf(A[i] * now.half[i], 127.0f));
      float e = enters[i], left = enters[i];
#pragma unroll
      for (int t = 0; t < 8; ++t) {
        a[i][t] = exp2_approx(now.dt[i][t] * A[i]);
        x[i][t] = now.w[i][t] * B[t];
        cd[i][t] = C[t] * now.dy[i][t];
      }
      left += cd[i][7];
#pragma unroll
      for (int t = 0; t < 8; ++t) {
        e = fmaf(a[i][t], e, x[i][t]);
        if (t < 7) left = fmaf(a[i][7 - t], left, cd[i][6 - t]);
      }
      float grad;
      enter(e, left * a[i][0], enters[i], factor, h[i], grad);
      cd[i][7] += grad;
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
#pragma unroll
      for (int t = 0; t < 8; ++t) {
        const float decayed = a[i][t] * h[i];  // kept, not h: r needs no other factor then
        h[i] = decayed + x[i][t];
        x[i][t] = decayed;
        to[8 + t] = fmaf(now.dy[i][t], h[i], to[8 + t]);
        if (t < 7) cd[i][6 - t] = fmaf(a[i][7 - t], cd[i][7 - t], cd[i][6 - t]);
      }
#pragma unroll
      for (int t = 7; t >= 0; --t) {
        to[t] = fmaf(cd[i][t], now.w[i][t], to[t]);
        now.s[i][t] = fmaf(cd[i][t], B[t], now.s[i][t]);
        const float part = cd[i][t] * x[i][t];
        now.r[i][t] = fmaf(part, A[i], now.r[i][t]);
        dA[i] = fmaf(part, now.dt[i][t], dA[i]);
      }
      leaves[i] = lanes.q == 1 || lanes.q == 2 ? 0.0f : cd[i][0] * a[i][0];
    }
    write_kept(mine, dA, leaves);
  }
  // `count` states of a tile: s and r of the lane's steps, and dB and dC summed over the warp's channels, rows
  // of 32 floats as those of B and C (`from`), but without a gap: odd states have their halves swapped.
  SCANKIT_DEVICE void scan(Steps& now, const float* from, int count) const {
    const int rest = lanes.group & (kTogether - 1);
    const bool upper = lanes.group >= kTogether;  // is left with dC
    int row[kTogether];
#pragma unroll
    for (int k = 0; k < kTogether; ++k) row[k] = (k ^ rest) * M::kPitch + lanes.q * 4;
    float* to = own + M::kPart + (upper * 16 + rest) * 32 + lanes.q * 4;
    const int first = (rest & 1) * 16;
#pragma unroll 1
    for (int slot = 0; slot < count; slot += kTogether) {
      float v[16] = {};
      const auto one = [&](int k, float(&sums)[16]) {
        state(now, slot + k, from + slot * M::kPitch + row[k], sums);
      };
      Sum::template add_states<0, kTogether, true>(v, one);
      Sum::template add<16, 16>(v, lane);
      quad_at(to + slot * 32, first) = make_float4(v[0], v[1], v[2], v[3]);
      quad_at(to + slot * 32, first ^ 16) = make_float4(v[4], v[5], v[6], v[7]);
    }
  }
  // Makes the compiler find anew all places that depend on the thread: it would hold them from tile to tile,
  // and spill what it has no register for.
  SCANKIT_DEVICE void forget_places() {
#ifndef SCANKIT_EMULATED
    asm volatile("" : "+r"(lane), "+r"(lanes.group), "+r"(lanes.q));
#endif
  }

  SCANKIT_DEVICE int first_step() const { return segment_index() * p.segments.tiles * kTile; }

  // The block's tiles from the last one to the first. What the first tile reads is waited for at once; that
  // of all others is copied while the tile after it is scanned.
  SCANKIT_DEVICE void run() {
    const Place& place = lanes.place;
    find_rows();
    const int chunks = static_cast<int>(tile_count(c.length));
    const int end =
        segment_index() + 1 < p.segments.count ? (segment_index() + 1) * p.segments.tiles : chunks;
    {
      float A[kCount][4], carry[kCount][4];
      load_A<Quarter>(A, c, place, lanes.group, lanes.q * 4);
      load_given<Quarter>(carry, g.dlast_state, c, place, lanes.group, lanes.q * 4);
      device::wait_for_last();
      if (end < chunks)
        enter_segment<Quarter, true>(carry, A, p.segments, p.workspace, c, place, lanes.group, lanes.q);
      keep_first(A, carry);
    }
    float dD[kCount] = {}, dbias[kCount] = {};
    if (first_step() < end * kTile) ask_for((end - 1) * kTile);
    wait_for_copies();
    if constexpr (M::kVectors) __syncwarp();
    stage();
    __syncthreads();
    for (int step = (end - 1) * kTile; step >= first_step(); step -= kTile) {
      Steps now;
      forget_places();
      prologue(now, dD, step);
      {
        float h[kCount][4];
        load_start(h, step);
        keep_start(h);
      }
      if constexpr (M::kVectors) __syncwarp();
      if (step > first_step()) ask_for(step - kTile);
      __syncwarp();
      scan(now, memory, 16);
      // The warps' sums are complete, B and C read, and so are the states that du may overwrite
      // (kept_states.h).
      __syncthreads();
      forget_places();
      if (step > first_step()) {
        wait_for_copies();
        if constexpr (M::kVectors) __syncwarp();
        stage();
      }
      put_sums(step);
      epilogue(now, dbias, step);
      __syncthreads();
    }
    put_states(segment_index() == 0);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (g.dD != nullptr) put_channel(dD[i], p.dD, i);
      if (g.ddelta_bias != nullptr) put_channel(dbias[i], p.dbias, i);
    }
  }
};

}  // namespace scankit::selective_scan
