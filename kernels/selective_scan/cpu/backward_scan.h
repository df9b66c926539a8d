// SPDX-License-Identifier: Apache-2.0
#pragma once
// The backward of a chunk of a tile, last step to first. With dh_t = carry_{t+1} + C_t dy_t and carry_t =
// a_t dh_t, the product q = carry_t h_{t-1} serves ddelta (sum of A q) and dA (sum of dt q): no division by
// a_t, no difference of states.
#include "kernels/selective_scan/cpu/forward_task.h"

namespace scankit::selective_scan {
namespace {

// A sum over all steps of a sequence, with what its additions rounded away (Kahan summation). In
// plain fp32 the sums of a billion steps were wrong by 2 %, because the terms of one more chunk
// vanished in them.
struct LongSum {
  Vec sum = {}, lost = {};
};
inline void add(LongSum& total, Vec term) {
  const Vec wanted = term - total.lost, sum = total.sum + wanted, lost = (sum - total.sum) - wanted;
  const IntVec finite = lost - lost == 0.0f;  // an infinite sum has lost nothing
  total = {sum, (Vec)((IntVec)lost & finite)};
}

// One thread's scratch of the backward.
struct BackwardScratch {
  float *delta, *u, *dy, *slope;      // tiles: dt, u, gradient of y, d dt / d delta
  float *input_sum, *rate_sum;        // tiles: sum over states of dh B, of A q
  float *gate, *work;                 // tiles: z and its gradients
  float *A, *rates, *carry, *dA;      // [number][channel]; dA of the chunk
  float *dB, *dC;                     // the same, of constant B and C
  float* start;                       // [number][channel]: states before the chunk
  LongSum *dA_sum, *dB_sum, *dC_sum;  // [number]: of all chunks
  float *B, *C;                       // [number][step], or [number][channel]
  float *decays, *states;             // [block's number][step][channel], one step more for the states
  BackwardScratch(float* at, int count) {
    for (float** tile : {&delta, &u, &dy, &slope, &input_sum, &rate_sum, &gate, &work})
      *tile = at, at += kTileFloats;
    for (float** each : {&A, &rates, &carry, &dA, &dB, &dC, &start}) *each = at, at += count * kLanes;
    for (LongSum** each : {&dA_sum, &dB_sum, &dC_sum})
      *each = reinterpret_cast<LongSum*>(at), at += count * kLongSumFloats;
    for (float** each : {&B, &C}) *each = at, at += count * kStateInterval;
    decays = at, at += kBackwardStates * kTileFloats;
    states = at;
  }
  static constexpr int kLongSumFloats = sizeof(LongSum) / sizeof(float);
  static constexpr long floats(int count) {
    return 8L * kTileFloats + (7L * kLanes + 3L * kLongSumFloats + 2L * kStateInterval) * count +
           kBackwardStates * (2L * kTileFloats + kLanes);
  }
};
static_assert(kBackwardStates >= 2);                    // a complex state's two parts
inline constexpr int kStateRow = kTileFloats + kLanes;  // one state's h_{-1}, h_0, ... of a chunk

// Computes the chunk's states and decays once more for kStates states from `first`, starting with the
// saved states, and keeps all of them: reverse() needs the state before each step.
template <int kStates, bool kConstantB>
inline void recompute(const BackwardScratch& s, int first, int steps) {
  Vec h[kStates], rate[kStates];
  for (int n = 0; n < kStates; ++n) {
    h[n] = load(s.start + (first + n) * kLanes);
    rate[n] = load(s.rates + (first + n) * kLanes);
    store(s.states + n * kStateRow, h[n]);
  }
  const float* B = s.B + first * kValueRow<kConstantB>;
  for (int t = 0; t < steps; ++t) {
    const Vec dt = load(s.delta + t * kLanes), input = dt * load(s.u + t * kLanes);
    for (int n = 0; n < kStates; ++n) {
      const Vec a = exp2(dt * rate[n]);
      h[n] = fma(a, h[n], input * value_at<kConstantB>(B, n, t));
      store(s.decays + n * kTileFloats + t * kLanes, a);
      store(s.states + n * kStateRow + (t + 1) * kLanes, h[n]);
    }
  }
}

// Walks the chunk from its last step to the first. The terms of dB_t replace the decays and those of
// dC_t the states of the step after, each once it has been read for the last time, so that no further
// memory is needed.
template <int kStates, bool kConstantB, bool kConstantC>
inline void reverse(const BackwardScratch& s, int first, int steps) {
  Vec carry[kStates], dA[kStates], A[kStates], h[kStates];
  for (int n = 0; n < kStates; ++n) {
    carry[n] = load(s.carry + (first + n) * kLanes);
    dA[n] = load(s.dA + (first + n) * kLanes);
    A[n] = load(s.A + (first + n) * kLanes);
    h[n] = load(s.states + n * kStateRow + steps * kLanes);
  }
  const float *B = s.B + first * kValueRow<kConstantB>, *C = s.C + first * kValueRow<kConstantC>;
  for (int t = steps - 1; t >= 0; --t) {
    const Vec dt = load(s.delta + t * kLanes), input = dt * load(s.u + t * kLanes),
              dy = load(s.dy + t * kLanes);
    Vec input_sum = load(s.input_sum + t * kLanes), rate_sum = load(s.rate_sum + t * kLanes);
    for (int n = 0; n < kStates; ++n) {
      float* decay = s.decays + n * kTileFloats + t * kLanes;
      float* state = s.states + n * kStateRow + t * kLanes;
      const Vec dh = fma(dy, value_at<kConstantC>(C, n, t), carry[n]);
      store(state + kLanes, dy * h[n]);
      carry[n] = dh * load(decay);
      store(decay, dh * input);
      h[n] = load(state);
      const Vec q = carry[n] * h[n];
      input_sum = fma(dh, value_at<kConstantB>(B, n, t), input_sum);
      rate_sum = fma(q, A[n], rate_sum);
      dA[n] = fma(q, dt, dA[n]);
    }
    store(s.input_sum + t * kLanes, input_sum);
    store(s.rate_sum + t * kLanes, rate_sum);
  }
  for (int n = 0; n < kStates; ++n) {
    store(s.carry + (first + n) * kLanes, carry[n]);
    store(s.dA + (first + n) * kLanes, dA[n]);
  }
}

// to += the sum of the terms over the steps, for each channel by itself.
inline void add_over_steps(const float* terms, int steps, float* to) {
  Vec sum = {};
  for (int t = 0; t < steps; ++t) sum = sum + load(terms + t * kLanes);
  store(to, load(to) + sum);
}

// The same two passes for one complex state, with dh = carry + 2 dy conj(C), carry = conj(a) dh and q =
// carry conj(h_{t-1}). C is stored doubled.
template <bool kConstantB>
inline void recompute_complex(const BackwardScratch& s, int state, int steps) {
  const int re = 2 * state * kLanes, im = re + kLanes;
  Complex h{load(s.start + re), load(s.start + im)};
  const Vec rate = load(s.rates + re), angular = load(s.rates + im);
  const float* B = s.B + 2 * state * kValueRow<kConstantB>;
  store(s.states, h.re);
  store(s.states + kStateRow, h.im);
  for (int t = 0; t < steps; ++t) {
    const Vec dt = load(s.delta + t * kLanes), input = dt * load(s.u + t * kLanes);
    const Complex a = complex_decay(dt, rate, angular);
    h = {fma(a.re, h.re, fma(-a.im, h.im, input * value_at<kConstantB>(B, 0, t))),
         fma(a.re, h.im, fma(a.im, h.re, input * value_at<kConstantB>(B, 1, t)))};
    store(s.decays + t * kLanes, a.re);
    store(s.decays + kTileFloats + t * kLanes, a.im);
    store(s.states + (t + 1) * kLanes, h.re);
    store(s.states + kStateRow + (t + 1) * kLanes, h.im);
  }
}

template <bool kConstantB, bool kConstantC>
inline void reverse_complex(const BackwardScratch& s, int state, int steps) {
  const int re = 2 * state * kLanes, im = re + kLanes;
  Complex carry{load(s.carry + re), load(s.carry + im)}, dA{load(s.dA + re), load(s.dA + im)};
  const Complex A{load(s.A + re), load(s.A + im)};
  const float *B = s.B + 2 * state * kValueRow<kConstantB>, *C = s.C + 2 * state * kValueRow<kConstantC>;
  Complex h{load(s.states + steps * kLanes), load(s.states + kStateRow + steps * kLanes)};
  for (int t = steps - 1; t >= 0; --t) {
    const Vec dt = load(s.delta + t * kLanes), input = dt * load(s.u + t * kLanes),
              dy = load(s.dy + t * kLanes), twice = 2.0f * dy;
    float *decay = s.decays + t * kLanes, *before = s.states + t * kLanes;
    const Complex a{load(decay), load(decay + kTileFloats)};
    const Complex dh{fma(dy, value_at<kConstantC>(C, 0, t), carry.re),
                     fma(-dy, value_at<kConstantC>(C, 1, t), carry.im)};
    store(before + kLanes, twice * h.re);
    store(before + kStateRow + kLanes, -twice * h.im);
    carry = {fma(a.re, dh.re, a.im * dh.im), fma(a.re, dh.im, -a.im * dh.re)};
    store(decay, dh.re * input);
    store(decay + kTileFloats, dh.im * input);
    h = {load(before), load(before + kStateRow)};
    const Complex q{fma(carry.re, h.re, carry.im * h.im), fma(carry.im, h.re, -carry.re * h.im)};
    const Vec input_sum = fma(dh.re, value_at<kConstantB>(B, 0, t), load(s.input_sum + t * kLanes));
    store(s.input_sum + t * kLanes, fma(dh.im, value_at<kConstantB>(B, 1, t), input_sum));
    store(s.rate_sum + t * kLanes, fma(A.re, q.re, fma(A.im, q.im, load(s.rate_sum + t * kLanes))));
    dA = {fma(dt, q.re, dA.re), fma(dt, q.im, dA.im)};
  }
  store(s.carry + re, carry.re);
  store(s.carry + im, carry.im);
  store(s.dA + re, dA.re);
  store(s.dA + im, dA.im);
}

// to[stride t] += the sum of terms[t] over the channels. Lanes behind the last channel are cleared first:
// they contain NaN where C does.
inline void add_over_channels(const float* terms, int channels, int steps, int stride, float* to) {
  for (int t = 0; t < steps; t += kLanes) {
    Vec rows[kLanes];
    const int count = steps - t < kLanes ? steps - t : kLanes;
    for (int i = 0; i < kLanes; ++i) rows[i] = i < count ? load(terms + (t + i) * kLanes) : Vec{};
    for (int i = 0; channels < kLanes && i < count; ++i)
      for (int lane = channels; lane < kLanes; ++lane) rows[i][lane] = 0.0f;
    const Vec sums = sum_rows(rows);
    if (count == kLanes && stride == 1) {
      store(to + t, load(to + t) + sums);
    } else {
      for (int i = 0; i < count; ++i) to[(t + i) * stride] += sums[i];
    }
  }
}

// Where a task adds up dB and dC of its group.
struct ProjectionSlab {
  float *dB, *dC;  // of the task's row and group: (states, length, parts)
  Index length;
};

// Moves the terms of one number to where they are summed: over the channels into the slab, or over the
// steps where B or C is constant. `n` is its index in the block of states, `number` that among all numbers
// of the channel.
template <bool kConstantB, bool kConstantC>
inline void collect(const BackwardScratch& s, const ProjectionSlab& slab, int channels, const Chunk& chunk,
                    int n, int number, int parts) {
  const Index offset =
      (number / parts) * parts * slab.length + chunk.start * parts + (parts > 1 ? number % parts : 0);
  const float *dB = s.decays + n * kTileFloats, *dC = s.states + n * kStateRow + kLanes;
  if constexpr (kConstantB) {
    add_over_steps(dB, chunk.steps, s.dB + number * kLanes);
  } else {
    add_over_channels(dB, channels, chunk.steps, parts, slab.dB + offset);
  }
  if constexpr (kConstantC) {
    add_over_steps(dC, chunk.steps, s.dC + number * kLanes);
  } else {
    add_over_channels(dC, channels, chunk.steps, parts, slab.dC + offset);
  }
}

// All states in blocks of kStates, then of half as many, and so on.
template <int kStates, bool kConstantB, bool kConstantC>
inline void reverse_all(const BackwardScratch& s, const ProjectionSlab& slab, int channels,
                        const Chunk& chunk, int first, int states) {
  for (; first + kStates <= states; first += kStates) {
    recompute<kStates, kConstantB>(s, first, chunk.steps);
    reverse<kStates, kConstantB, kConstantC>(s, first, chunk.steps);
    for (int n = 0; n < kStates; ++n)
      collect<kConstantB, kConstantC>(s, slab, channels, chunk, n, first + n, 1);
  }
  if constexpr (kStates > 1)
    reverse_all<kStates / 2, kConstantB, kConstantC>(s, slab, channels, chunk, first, states);
}

inline void reverse_chunk(const Common& c, const BackwardScratch& s, const ProjectionSlab& slab, int channels,
                          const Chunk& chunk) {
  with_constants(c, [&](auto constant_B, auto constant_C) {
    constexpr bool kB = decltype(constant_B)::value, kC = decltype(constant_C)::value;
    if (!c.complex) return reverse_all<kBackwardStates, kB, kC>(s, slab, channels, chunk, 0, c.states);
    for (int n = 0; n < c.states; ++n) {
      recompute_complex<kB>(s, n, chunk.steps);
      reverse_complex<kB, kC>(s, n, chunk.steps);
      for (int part = 0; part < 2; ++part) collect<kB, kC>(s, slab, channels, chunk, part, 2 * n + part, 2);
    }
  });
}

}  // namespace
}  // namespace scankit::selective_scan
