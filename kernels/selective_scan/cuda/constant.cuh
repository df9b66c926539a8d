// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/projections.cuh"

// Constant B and C, (dim, states) in place of (batch, groups, states, length), in the plain
// kernels (layout.h, kConstant). A thread's numbers of them stay in registers and nothing of
// them is staged; their gradients,
//   dB = sum over steps of g w,  dC = sum over steps of dy h
// are sums of the thread's own channels and states, as dA is, and need no sum over lanes. Which of the two
// is constant is asked once a tile: the scans are compiled for each of the three kinds.
namespace scankit::selective_scan {

// The scans' last argument (`held`) where B and C are both variable.
struct AllVariable {
  static constexpr bool kB = false, kC = false;
};

// Empty where B and C are variable, so that the kernels pass it along at no cost.
template <class L, bool kConstant>
struct Constants {};

// The numbers of a thread's states; 0 where B (C) is variable, or the state does not exist.
template <class L>
struct Constants<L, true> {
  float B[L::kChannels][L::kPer], C[L::kChannels][L::kPer];

  // From its first state `state` on. Unit state strides come as vectors where the address allows it.
  SCANKIT_DEVICE static void load(float (&to)[L::kChannels][L::kPer], const Matrix& from, const Common& c,
                                  const Place& place, int group, int state) {
#pragma unroll
    for (int ch = 0; ch < L::kChannels; ++ch) {
      const int channel = group + ch * L::kGroups;
      const bool there = from.data != nullptr && channel < place.channels;
      const float* at = from.data + (place.channel + channel) * from.dim_stride + state * from.state_stride;
      if (from.state_stride == 1) {
        load_states<L::kPer>(to[ch], at, there ? c.states - state : 0);
      } else {
#pragma unroll
        for (int s = 0; s < L::kPer; ++s)
          to[ch][s] = there && state + s < c.states ? at[s * from.state_stride] : 0.0f;
      }
    }
  }
  SCANKIT_DEVICE void load(const Common& c, const Place& place, int group, int state) {
    load(B, c.constant_B, c, place, group, state);
    load(C, c.constant_C, c, place, group, state);
  }
};

// `held` of a scan that is compiled for a constant B (kB), a constant C (kC), or both.
template <class L, bool kB_, bool kC_>
struct Held {
  static constexpr bool kB = kB_, kC = kC_;
  const Constants<L, true>& of;

  // Four steps of a constant are four times the same number; the compiler keeps it in one register.
  SCANKIT_DEVICE static void repeat(float (&v)[4], float number) {
#pragma unroll
    for (int t = 0; t < 4; ++t) v[t] = number;
  }
  // B (C) of one channel ch and state s of the thread at four steps, in place of a read from shared memory.
  SCANKIT_DEVICE void fill_B(float (&v)[4], int ch, int s) const { repeat(v, of.B[ch][s]); }
  SCANKIT_DEVICE void fill_C(float (&v)[4], int ch, int s) const { repeat(v, of.C[ch][s]); }
};

// Calls scan(held) with the type that fits the call, by the tensors alone: all threads take the same way.
template <class L, class Scan>
SCANKIT_DEVICE void with_constants(const Common&, const Constants<L, false>&, const Scan& scan) {
  scan(AllVariable{});
}
template <class L, class Scan>
SCANKIT_DEVICE void with_constants(const Common& c, const Constants<L, true>& of, const Scan& scan) {
  if (c.constant_B.data == nullptr)
    scan(Held<L, false, true>{of});
  else if (c.constant_C.data == nullptr)
    scan(Held<L, true, false>{of});
  else
    scan(Held<L, true, true>{of});
}

// Sums of the gradients of a constant B and C over the steps so far, for the thread's channels and states.
// Those of a variable one stay 0 and are not stored.
template <class L, bool kConstant>
struct ConstantSums {};
template <class L>
struct ConstantSums<L, true> {
  float dB[L::kChannels][L::kPer], dC[L::kChannels][L::kPer];
};

// Where four steps of one state add their parts of dB and dC: to v, dB's four and then dC's, which is
// summed over the channels afterwards, or to a sum of the thread's own where B or C is constant. v has
// kCount values; with one of the two constant, only the other's four.
template <class H>
struct Gradients;
template <>
struct Gradients<AllVariable> {
  static constexpr int kCount = 8;
  float (&v)[8];
  SCANKIT_DEVICE void add_dB(int t, float x, float y) const { v[t] = fmaf(x, y, v[t]); }
  SCANKIT_DEVICE void add_dC(int t, float x, float y) const { v[4 + t] = fmaf(x, y, v[4 + t]); }
};
template <class L, bool kB, bool kC>
struct Gradients<Held<L, kB, kC>> {
  static constexpr int kCount = 4;
  float (&v)[4];
  float &dB, &dC;
  SCANKIT_DEVICE void add_dB(int t, float x, float y) const {
    float& to = kB ? dB : v[t];
    to = fmaf(x, y, to);
  }
  SCANKIT_DEVICE void add_dC(int t, float x, float y) const {
    float& to = kC ? dC : v[t];
    to = fmaf(x, y, to);
  }
};

// The Gradients of register s of channel ch: v alone, or v and the thread's own sums.
template <class H, class L>
SCANKIT_DEVICE Gradients<AllVariable> gradients_of(float (&v)[8], ConstantSums<L, false>&, int, int) {
  return {v};
}
template <class H, class L>
SCANKIT_DEVICE Gradients<H> gradients_of(float (&v)[4], ConstantSums<L, true>& own, int ch, int s) {
  return {v, own.dB[ch][s], own.dC[ch][s]};
}

}  // namespace scankit::selective_scan
