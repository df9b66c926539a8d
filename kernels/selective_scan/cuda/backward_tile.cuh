// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/forward.cuh"

// The two passes of the backward over a tile. The first (replay) runs the forward again and keeps the
// states at every fourth step; the second (reverse) takes these quads of steps from last to first: forward
// again with all decays and states in registers, then the reverse recurrence. With carry = a_t g_t and g_t
// = C_t dy_t + carry of the step behind:
//   dC_t = dy_t h_t, dB_t = g_t w_t, s_t = sum g_t B_t; carry h_(t-1) gives both A's and delta's part.
// A state is computed twice and each decay twice: recomputing costs an exponential, keeping them all would
// cost 32 registers a state. The recurrence never runs backwards by dividing by a decay: decays underflow,
// and rounding errors would grow. No decay is kept from one quad to the next.
namespace scankit::selective_scan {

// What a thread has of its channels and states, in the order of ChannelSum: A times log2 e, the carried
// gradient a g, and dA's sum so far.
template <class L>
struct ScanState {
  float A[L::kChannels][L::kPer];  // times log2 e
  float carry[L::kChannels][L::kPer];
  float dA[L::kChannels][L::kPer];
};

// A warp's shared memory in the backward (BackwardMemory in layout.h): rows of dt, w, dy, r and s, then
// `kept`, with the states before each of a tile's eight quads. Once a quad's states are in registers, its
// place takes the quad's sums of dB and dC over the warp's channels.
template <class L, bool kSliced, class O>
struct WarpMemory {
  using M = BackwardMemory<L, kSliced, O>;
  using Options = O;

  float *dt, *w, *dy, *s, *r, *kept;

  SCANKIT_DEVICE explicit WarpMemory(float* at) {
    dt = at, w = dt + L::kRows, dy = w + L::kRows, r = dy + L::kRows;
    s = kSliced ? r + L::kRows : w;  // w is dead where s is written
    kept = at + M::kRowArrays * L::kRows;
  }
  // Four steps of dB (`which` 0) or dC (1) of state kPer * q + s, from `kept`. What a warp writes at once,
  // those of every q and of two s, is 32 banks; the exclusive or spreads a state's quads, which
  // store_projections reads at once.
  SCANKIT_DEVICE static int part_offset(int quad, int which, int s, int q) {
    const int slot = (s % 2 * L::kLanes + q) ^ quad % (2 * L::kLanes);
    return quad * M::kKept + (which * (L::kPer / 2) + s / 2) * 8 * L::kLanes + slot * 4;
  }
  // The table of addresses: where a lane finds one of its rows. The four lanes of a row share an entry.
  SCANKIT_DEVICE const char*& row(int which, int lane) const {
    float* table = kept + (M::kTable - M::kRowArrays * L::kRows);
    return reinterpret_cast<const char**>(table)[which * 8 + lane / 4];
  }
  // A lane's i-th sum of a constant B's or C's gradient (move_sums in backward.cuh).
  SCANKIT_DEVICE float& constant_sum(int i, int lane) const {
    return kept[M::kSums - M::kRowArrays * L::kRows + i * 32 + lane];
  }
  // Of r and s, which the slices add to.
  SCANKIT_DEVICE void clear_sums(int lane) {
    for (int i = lane; i < L::kRows; i += 32) r[i] = s[i] = 0.0f;
  }
  // The states before a quad, each lane its own: no barrier between keep and recall.
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

// dB and dC of a thread's states over four steps (kValues: dB's four, dC's four), summed over the warp's
// channels, always in the same order. As in sum_lanes, a lane gives away the half that its partner keeps.
// First the halves are states: register s of a lane is not state s of its own but s ^ (group % kPer), so a
// lane's upper half of registers is the lower half of the lane that it sends them to, and no value has to
// be selected. Once a lane is left with one state, the halves are values, until each lane has kOwn of
// them. For 4x4, 32 numbers of eight groups of lanes take 16 + 8 + 4 shuffles. By shuffles and not through
// shared memory, whose bandwidth is what the backward waits for.
template <class L, int kValues = 8>
struct ChannelSum {
  static_assert(L::kGroups >= L::kPer && L::kGroups <= kValues * L::kPer);
  static constexpr int kOwn =
      kValues * L::kPer / L::kGroups;  // values that a lane is left with, of one state

  // The state in register 0, and the one that the lane is left with; an exclusive or of s with it is the
  // state in register s.
  SCANKIT_DEVICE static int state(int group) { return group % L::kPer; }
  // From the order of the states to that of the registers, or back: an exclusive or is its own inverse.
  SCANKIT_DEVICE static void permute(float (&v)[L::kChannels][L::kPer], int group) {
#pragma unroll
    for (int bit = 1; bit < L::kPer; bit *= 2) {
      const bool swapped = (group & bit) != 0;
#pragma unroll
      for (int i = 0; i < L::kChannels * L::kPer; ++i) {
        if (i & bit) continue;
        float& low = v[i / L::kPer][i % L::kPer];
        float& high = v[i / L::kPer][i % L::kPer + bit];
        const float was = low;
        low = swapped ? high : low;
        high = swapped ? was : high;
      }
    }
  }

  // Sums the registers [kFirst, kFirst + kCount) over the lanes that differ in the bits of kCount;
  // one(s, v) adds what register s has to v. kZero: v is zero so far. The upper half is computed
  // and sent first, so that only kValues numbers are alive at each level. A lane is left with
  // kValues values of state(group).
  // The recursion is over compile-time counts: the compiler flattens it to straight code in which v and
  // send are registers.
  template <int kFirst, int kCount, bool kZero, class One>
  SCANKIT_DEVICE static void add_states(float (&v)[kValues], const One& one) {
    if constexpr (kCount == 1) {
      one(kFirst, v);
    } else {
      constexpr int kHalf = kCount / 2;
      float send[kValues] = {};
      add_states<kFirst + kHalf, kHalf, true>(send, one);
#pragma unroll
      for (int i = 0; i < kValues; ++i) {
        const float got = __shfl_xor_sync(0xffffffffu, send[i], L::kLanes * kHalf);
        v[i] = kZero ? got : v[i] + got;
      }
      add_states<kFirst, kHalf, false>(v, one);
    }
  }
  // The rest of the lanes, at kDistance and more: of kCount values in v, half change hands at each level.
  template <int kCount, int kDistance>
  SCANKIT_DEVICE static void add(float (&v)[kValues], int lane) {
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
  // Which of the kValues values the lane's first one is: upper halves, by the bits of its group.
  SCANKIT_DEVICE static int first(int group) {
    int at = 0;
#pragma unroll
    for (int bit = L::kPer, half = kValues / 2; bit < L::kGroups; bit *= 2, half /= 2)
      if (group & bit) at += half;
    return at;
  }
  // Writes what a lane is left with: kOwn values side by side, 16 bytes at once where there are four.
  SCANKIT_DEVICE static void put(float* to, const float (&v)[kValues]) {
    if constexpr (kOwn == 4) {
      quad_at(to, 0) = make_float4(v[0], v[1], v[2], v[3]);
    } else {
#pragma unroll
      for (int i = 0; i < kOwn; ++i) to[i] = v[i];
    }
  }
};

// From the states h before the tile: those before each of its eight quads, to `kept`. The last quad's own
// steps are not replayed, as nothing starts behind them. `projections`: B and C of the tile; `held`: what
// is constant of them (constant.cuh). B's rows are read in the order of the registers.
// Its results are states of the warp's own channels, each lane its own: no barrier before reverse() reads
// them.
template <class L, class M, class H>
SCANKIT_DEVICE void replay(M memory, float* projections, const float (&A)[L::kChannels][L::kPer],
                           float (&h)[L::kChannels][L::kPer], int group, int q, int lane, const H& held) {
  float dt[L::kChannels][4], w[L::kChannels][4], b[L::kPer][4];
  // Moved on from quad to quad: as products of the quad's number the places cost more.
  float *row = memory.dt + group * kPitch, *b_row[L::kPer];
#pragma unroll
  for (int s = 0; s < L::kPer; ++s)
    b_row[s] = projections + ((s ^ ChannelSum<L>::state(group)) * L::kLanes + q) * kPitch;
  const auto load = [&] {
#pragma unroll
    for (int ch = 0; ch < L::kChannels; ++ch) {
      read_quad(row + ch * L::kGroups * kPitch, 0, dt[ch]);
      read_quad(row + ch * L::kGroups * kPitch + L::kRows, 0, w[ch]);
    }
    row += 4;
    if constexpr (!H::kB) {
#pragma unroll
      for (int s = 0; s < L::kPer; ++s) {
        read_quad(b_row[s], 0, b[s]);
        b_row[s] += 4;
      }
    }
  };
  load();
#pragma unroll
  for (int ch = 0; ch < L::kChannels; ++ch) memory.keep(0, ch, lane, h[ch]);
#pragma unroll(M::Options::kReplayQuads)
  for (int quad = 0; quad < 7; ++quad) {
#pragma unroll
    for (int s = 0; s < L::kPer; ++s) {
#pragma unroll
      for (int ch = 0; ch < L::kChannels; ++ch) {
        if constexpr (H::kB) held.fill_B(b[s], ch, s);
#pragma unroll
        for (int t = 0; t < 4; ++t)
          h[ch][s] = fmaf(exp2_approx(dt[ch][t] * A[ch][s]), h[ch][s], w[ch][t] * b[s][t]);
      }
    }
    // Ahead of the stores, which neither compiler moves a load across.
    if (quad < 6) load();
#pragma unroll
    for (int ch = 0; ch < L::kChannels; ++ch) memory.keep(quad + 1, ch, lane, h[ch]);
  }
}

// One state of one channel over four steps: forward from h, the state before them, then back from `carry`,
// which becomes that of the step before. Adds to dA, and to s and r, which are sums over the states.
template <class G>
SCANKIT_DEVICE void reverse_four(const float (&dt)[4], const float (&w)[4], const float (&dy)[4],
                                 const float (&b)[4], const float (&c)[4], float A, float h, float& carry,
                                 float& dA, float (&s)[4], float (&r)[4], const G& gradients) {
  float a[4], before[4];
#pragma unroll
  for (int t = 0; t < 4; ++t) {
    a[t] = exp2_approx(dt[t] * A);
    before[t] = h;
    h = fmaf(a[t], h, w[t] * b[t]);
    gradients.add_dC(t, dy[t], h);
  }
#pragma unroll
  for (int t = 3; t >= 0; --t) {
    const float g = fmaf(c[t], dy[t], carry);
    gradients.add_dB(t, g, w[t]);
    s[t] = fmaf(g, b[t], s[t]);
    carry = a[t] * g;
    const float part = carry * before[t];
    r[t] = fmaf(A, part, r[t]);
    dA = fmaf(dt[t], part, dA);
  }
}

// Quad after quad from the last: the warp's sums of dB and dC to `kept`, those of s and r to their rows
// (kAdd: added to what other slices left there), a constant B's and C's to own_sums.
// Called by all lanes, with all of the tile's rows complete. On return the rows of s and r are complete for
// the warp, the sums in `kept` only behind the caller's barrier.
template <class L, bool kAdd, class M, class H, class Own>
SCANKIT_DEVICE void reverse(M memory, float* projections, ScanState<L>& state, int group, int q, int lane,
                            const H& held, Own& own_sums) {
  using Sum = ChannelSum<L, Gradients<H>::kCount>;
  const int own = Sum::state(group), first = Sum::first(group);
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
    __syncwarp();  // s overwrites w, and the sums the states, where everybody has read them
    float v[Gradients<H>::kCount] = {};  // dB, dC
    // Register s over all of the thread's channels, so that channels are summed before any shuffle.
    const auto one = [&](int s, float(&to)[Gradients<H>::kCount]) {
      float b[4], c[4];
      float* row = projections + ((s ^ own) * L::kLanes + q) * kPitch;
      if constexpr (!H::kB) read_quad(row, quad * 4, b);
      if constexpr (!H::kC) read_quad(row + L::kSlice * kPitch, quad * 4, c);
#pragma unroll
      for (int ch = 0; ch < L::kChannels; ++ch) {
        if constexpr (H::kB) held.fill_B(b, ch, s);
        if constexpr (H::kC) held.fill_C(c, ch, s);
        reverse_four(dt[ch], w[ch], dy[ch], b, c, state.A[ch][s], h[ch][s], state.carry[ch][s],
                     state.dA[ch][s], s_sum[ch], r_sum[ch], gradients_of<H>(to, own_sums, ch, s));
      }
    };
    if constexpr (H::kB && H::kC) {
#pragma unroll
      for (int s = 0; s < L::kPer; ++s) one(s, v);
    } else {
      Sum::template add_states<0, L::kPer, true>(v, one);
      Sum::template add<Gradients<H>::kCount, L::kLanes * L::kPer>(v, lane);
      const int value = first + (H::kB ? 4 : 0);
      Sum::put(memory.kept + M::part_offset(quad, value / 4, own, q) + first % 4, v);
    }
#pragma unroll
    for (int ch = 0; ch < L::kChannels; ++ch) {
      sum_lanes<L::kLanes>(s_sum[ch], q);
      sum_lanes<L::kLanes>(r_sum[ch], q);
    }
#pragma unroll
    for (int ch = 0; ch < L::kChannels; ++ch) {
      const int at = (group + ch * L::kGroups) * kPitch;
      put_lanes<L::kLanes, kAdd>(memory.s + at, quad * 4, s_sum[ch], q);
      put_lanes<L::kLanes, kAdd>(memory.r + at, quad * 4, r_sum[ch], q);
    }
  }
}

}  // namespace scankit::selective_scan
