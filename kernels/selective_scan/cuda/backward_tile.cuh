// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/forward.cuh"

// The two passes of the backward over a tile. The first replays the forward and keeps the states at every
// fourth step; the second takes these sub-blocks from last to first: forward again with all decays and states
// in registers, then the reverse recurrence. With carry = a_t dh_t and g_t = dh_t = C_t dy_t + carry:
//   dC_t = dy_t h_t, dB_t = g_t w_t, s_t = sum g_t B_t; carry = a_t g_t; carry h_(t-1) gives both A's and
//   delta's part.
// Nothing is divided and no decay is kept from one sub-block to the next.
namespace scankit::selective_scan {

template <class L>
struct ScanState {
  float A[L::kChannels][L::kPer];  // times log2 e
  float carry[L::kChannels][L::kPer];
  float dA[L::kChannels][L::kPer];
};

// A warp's shared memory in the backward, in floats.
template <class L, bool kSliced>
struct WarpMemory {
  using M = BackwardMemory<L, kSliced>;

  float *dt, *w, *dy, *s, *r, *kept, *sum;

  SCANKIT_DEVICE explicit WarpMemory(float* at) {
    dt = at, w = dt + L::kRows, dy = w + L::kRows, r = dy + L::kRows;
    s = kSliced ? r + L::kRows : w;  // w is dead where s is written
    kept = at + M::kRowArrays * L::kRows;
    sum = kept + 8 * M::kKept;
  }
  // Four steps of value `which * kSlice + state`, from the warp's memory; the exclusive or spreads a state's
  // quads over the banks.
  SCANKIT_DEVICE static int part_offset(int quad, int value) {
    return M::kRowArrays * L::kRows + quad * M::kKept + (value ^ quad % (2 * L::kSlice)) * 4;
  }
  SCANKIT_DEVICE void clear_sums(int lane) {
    for (int i = lane; i < L::kRows; i += 32) r[i] = s[i] = 0.0f;
  }
  SCANKIT_DEVICE void keep(int quad, int ch, int lane, const float (&h)[L::kPer]) {
    float* to = kept + quad * M::kKept + ch * L::kPer * 32;
    if constexpr (L::kPer == 4) {
      reinterpret_cast<float4*>(to)[lane] = make_float4(h[0], h[1], h[2], h[3]);
    } else {
#pragma unroll
      for (int s = 0; s < L::kPer; ++s) to[s * 32 + lane] = h[s];
    }
  }
  SCANKIT_DEVICE void recall(int quad, int ch, int lane, float (&h)[L::kPer]) {
    const float* from = kept + quad * M::kKept + ch * L::kPer * 32;
    if constexpr (L::kPer == 4) {
      const float4 v = reinterpret_cast<const float4*>(from)[lane];
      h[0] = v.x, h[1] = v.y, h[2] = v.z, h[3] = v.w;
    } else {
#pragma unroll
      for (int s = 0; s < L::kPer; ++s) h[s] = from[s * 32 + lane];
    }
  }
};

// From the states before the tile: those before each of its eight quads of steps.
template <class L, class M>
SCANKIT_DEVICE void replay(M memory, float* projections, const float (&A)[L::kChannels][L::kPer],
                           float (&h)[L::kChannels][L::kPer], int group, int q, int lane) {
  float dt[L::kChannels][4], w[L::kChannels][4], b[L::kPer][4];
  const auto load = [&](int quad) {
#pragma unroll
    for (int ch = 0; ch < L::kChannels; ++ch) {
      read_quad(memory.dt + (group + ch * L::kGroups) * kPitch, quad * 4, dt[ch]);
      read_quad(memory.w + (group + ch * L::kGroups) * kPitch, quad * 4, w[ch]);
    }
#pragma unroll
    for (int s = 0; s < L::kPer; ++s) read_quad(projections + (s * L::kLanes + q) * kPitch, quad * 4, b[s]);
  };
  load(0);
#pragma unroll
  for (int ch = 0; ch < L::kChannels; ++ch) memory.keep(0, ch, lane, h[ch]);
#pragma unroll 1
  for (int quad = 0; quad < 7; ++quad) {
#pragma unroll
    for (int s = 0; s < L::kPer; ++s) {
#pragma unroll
      for (int ch = 0; ch < L::kChannels; ++ch) {
#pragma unroll
        for (int t = 0; t < 4; ++t)
          h[ch][s] = fmaf(exp2_approx(dt[ch][t] * A[ch][s]), h[ch][s], w[ch][t] * b[s][t]);
      }
    }
    // Ahead of the stores, which neither compiler moves a load across.
    if (quad < 6) load(quad + 1);
#pragma unroll
    for (int ch = 0; ch < L::kChannels; ++ch) memory.keep(quad + 1, ch, lane, h[ch]);
  }
}

// One state of one channel over four steps.
SCANKIT_DEVICE void reverse_four(const float (&dt)[4], const float (&w)[4], const float (&dy)[4],
                                 const float (&b)[4], const float (&c)[4], float A, float h, float& carry,
                                 float& dA, float (&s)[4], float (&r)[4], float (&dB)[4], float (&dC)[4]) {
  float a[4], before[4];
#pragma unroll
  for (int t = 0; t < 4; ++t) {
    a[t] = exp2_approx(dt[t] * A);
    before[t] = h;
    h = fmaf(a[t], h, w[t] * b[t]);
    dC[t] = fmaf(dy[t], h, dC[t]);
  }
#pragma unroll
  for (int t = 3; t >= 0; --t) {
    const float g = fmaf(c[t], dy[t], carry);
    dB[t] = fmaf(g, w[t], dB[t]);
    s[t] = fmaf(g, b[t], s[t]);
    carry = a[t] * g;
    const float v = carry * before[t];
    r[t] = fmaf(A, v, r[t]);
    dA = fmaf(dt[t], v, dA);
  }
}

// Sums the lanes' dB and dC of a quad over the warp's channels, always in the same order. Each lane has one
// value's four steps, or its share of the channels of one.
template <class L>
struct ChannelSum {
  static constexpr int kValues = 2 * L::kSlice;       // dB, then dC
  static constexpr int kShare = 32 / kValues;         // lanes that share one value
  static constexpr int kTerms = L::kGroups / kShare;  // groups that a lane sums
  static_assert(kShare >= 1 && kTerms >= 1);

  template <class M>
  SCANKIT_DEVICE static float4 load(const M& memory, int lane) {
    const int value = lane % kValues, share = lane / kValues;
    const int which = value / L::kSlice, s = value % L::kSlice / L::kLanes, q = value % L::kLanes;
    const float4* from = reinterpret_cast<const float4*>(memory.sum) + (which * L::kPer + s) * 32 + q;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
    for (int i = 0; i < kTerms; ++i) {
      // Rows of `sum` start in the same bank: each state starts at another group.
      const float4 v = from[(share * kTerms + (i + s) % kTerms) * L::kLanes];
      sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    }
    return sum;
  }
  template <class M>
  SCANKIT_DEVICE static void store(const M& memory, int quad, int lane, float4 sum) {
#pragma unroll
    for (int step = kValues; step < 32; step *= 2) {
      sum.x += __shfl_xor_sync(0xffffffffu, sum.x, step);
      sum.y += __shfl_xor_sync(0xffffffffu, sum.y, step);
      sum.z += __shfl_xor_sync(0xffffffffu, sum.z, step);
      sum.w += __shfl_xor_sync(0xffffffffu, sum.w, step);
    }
    const int value = lane % kValues;
    const int state = value % L::kLanes * L::kPer + value % L::kSlice / L::kLanes;
    float* to = memory.dt + M::part_offset(quad, value / L::kSlice * L::kSlice + state);
    if (lane < kValues) *reinterpret_cast<float4*>(to) = sum;
  }
};

// Quad after quad from the last. The sum over the channels of a quad waits for the next one, whose arithmetic
// hides it.
template <class L, bool kAdd, class M>
SCANKIT_DEVICE void reverse(M memory, float* projections, ScanState<L>& state, int group, int q, int lane) {
#pragma unroll 1
  for (int quad = 7; quad >= 0; --quad) {
    float dt[L::kChannels][4], w[L::kChannels][4], dy[L::kChannels][4];
    float s_sum[L::kChannels][4] = {}, r_sum[L::kChannels][4] = {}, h[L::kChannels][L::kPer];
#pragma unroll
    for (int ch = 0; ch < L::kChannels; ++ch) {
      const int row = (group + ch * L::kGroups) * kPitch;
      read_quad(memory.dt + row, quad * 4, dt[ch]);
      read_quad(memory.w + row, quad * 4, w[ch]);
      read_quad(memory.dy + row, quad * 4, dy[ch]);
      memory.recall(quad, ch, lane, h[ch]);
    }
    const float4 sum = ChannelSum<L>::load(memory, lane);  // of quad + 1; means nothing before the first
    __syncwarp();
    float b[2][4], c[2][4];
    float* row = projections + q * kPitch;
    read_quad(row, quad * 4, b[0]);
    read_quad(row + L::kSlice * kPitch, quad * 4, c[0]);
#pragma unroll
    for (int s = 0; s < L::kPer; ++s) {
      float dB[4] = {}, dC[4] = {};
      if (s + 1 < L::kPer) {  // ahead of the stores, which no load is moved across
        read_quad(row + (s + 1) * L::kLanes * kPitch, quad * 4, b[(s + 1) % 2]);
        read_quad(row + (s + 1) * L::kLanes * kPitch + L::kSlice * kPitch, quad * 4, c[(s + 1) % 2]);
      }
#pragma unroll
      for (int ch = 0; ch < L::kChannels; ++ch)
        reverse_four(dt[ch], w[ch], dy[ch], b[s % 2], c[s % 2], state.A[ch][s], h[ch][s], state.carry[ch][s],
                     state.dA[ch][s], s_sum[ch], r_sum[ch], dB, dC);
      float4* to = reinterpret_cast<float4*>(memory.sum) + s * 32 + lane;
      to[0] = make_float4(dB[0], dB[1], dB[2], dB[3]);
      to[L::kPer * 32] = make_float4(dC[0], dC[1], dC[2], dC[3]);
    }
    if (quad < 7) ChannelSum<L>::store(memory, quad + 1, lane, sum);
#pragma unroll
    for (int ch = 0; ch < L::kChannels; ++ch) {
      sum_lanes<L::kLanes>(s_sum[ch], q);
      sum_lanes<L::kLanes>(r_sum[ch], q);
    }
    __syncwarp();  // s overwrites w where nobody needs it any more; the next quad sums what was stored
#pragma unroll
    for (int ch = 0; ch < L::kChannels; ++ch) {
      const int at = (group + ch * L::kGroups) * kPitch;
      put_lanes<L::kLanes, kAdd>(memory.s + at, quad * 4, s_sum[ch], q);
      put_lanes<L::kLanes, kAdd>(memory.r + at, quad * 4, r_sum[ch], q);
    }
  }
  ChannelSum<L>::store(memory, 0, lane, ChannelSum<L>::load(memory, lane));
}

}  // namespace scankit::selective_scan
