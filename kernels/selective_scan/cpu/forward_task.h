// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <initializer_list>

#include "kernels/selective_scan/cpu/scan.h"
#include "kernels/selective_scan/cpu/tile.h"

// The forward of one tile: chunk by chunk, the inputs are transposed into tiles, then each block of states
// runs over the chunk's steps with its values in registers. A "number" is an fp32 value of a state: one of
// a real state, two of a complex one.
namespace scankit::selective_scan {
namespace {

inline constexpr float kLog2E = 0x1.715476p+0f;

// The address of a step in a channel's row.
template <class T, class S>
inline auto row(const S& sequence, int batch, int channel, Index step) {
  return (T*)sequence.data + batch * sequence.batch_stride + channel * sequence.dim_stride + step;
}
inline float* saved(const SavedStates& x, const Place& at, Index chunk) {
  return x.data + at.batch * x.batch_stride + at.channel * x.dim_stride +
         (at.first_chunk + chunk) * x.chunk_stride;
}
// `sequence_group` counts the groups within each sequence. The last tile of a group may have fewer
// channels than lanes.
inline Place place_of(const Common& common, const TaskGrid& grid, int sequence_group, int tile) {
  const int per_group = common.dim / common.groups, group = sequence_group % common.groups;
  const int sequence = sequence_group / common.groups, first = tile * grid.lanes, left = per_group - first;
  Place at{sequence, sequence,      group, group * per_group + first, left < grid.lanes ? left : grid.lanes,
           0,        common.length, 0};
  if (const int* bounds = common.packed.cu_seqlens) {
    at.batch = 0;
    at.first = bounds[sequence];
    at.length = bounds[sequence + 1] - bounds[sequence];
    at.first_chunk = bounds[sequence] / kStateInterval + sequence;
  }
  return at;
}

// The tile's part of a given state, or zeros if there is none.
inline void load_given(const Common& c, const States& from, const Place& at, float* to) {
  const int numbers = numbers_of(c);
  if (!from.data) {
    __builtin_memset(to, 0, sizeof(float) * (size_t)(numbers * kLanes));
  } else {
    load_states(from.data + at.sequence * from.batch_stride + at.channel * from.dim_stride, from.dim_stride,
                at.channels, numbers, to);
  }
}
// The same to a contiguous tensor of states.
inline void store_given(const Common& c, float* to, const Place& at, const float* from) {
  const int numbers = numbers_of(c);
  store_states(to + ((Index)at.sequence * c.dim + at.channel) * numbers, numbers, at.channels, numbers, from);
}

// The rows of a matrix (dim, states) for the tile's channels as [number][channel]; a complex state has its
// real part, then its imaginary part. Real parts are multiplied by `factor`, imaginary parts by
// `imaginary_factor`. Lanes without a channel are 0.
inline void load_matrix(const Common& common, const Matrix& from, const Place& at, float factor,
                        float imaginary_factor, float* to) {
  for (int n = 0; n < common.states; ++n)
    for (int part = 0; part < parts_of(common); ++part, to += kLanes)
      for (int i = 0; i < kLanes; ++i) {
        const Index offset = (at.channel + i) * from.dim_stride + n * from.state_stride + part;
        to[i] = i < at.channels ? from.data[offset] * (part ? imaginary_factor : factor) : 0.0f;
      }
}
inline Matrix rates_of(const Common& c) { return {c.A, c.A_dim_stride, c.A_state_stride}; }

// B or C at a step. A variable one is the same for all channels, a constant one is the same at every step.
template <bool kConstant>
inline Vec value_at(const float* values, int number, int t) {
  if constexpr (kConstant) {
    return load(values + number * kLanes);
  } else {
    return splat(values[number * kStateInterval + t]);
  }
}
// How many floats apart the values of two numbers are.
template <bool kConstant>
inline constexpr int kValueRow = kConstant ? kLanes : kStateInterval;

// A constant as a type, for generic lambdas.
template <bool kIs>
struct Flag {
  static constexpr bool value = kIs;
};
// Calls f(Flag<B is constant>, Flag<C is constant>), which compiles a loop for each of
// the four combinations.
template <class F>
inline void with_constants(const Common& c, F f) {
  if (c.constant_B.data) {
    c.constant_C.data ? f(Flag<true>{}, Flag<true>{}) : f(Flag<true>{}, Flag<false>{});
  } else {
    c.constant_C.data ? f(Flag<false>{}, Flag<true>{}) : f(Flag<false>{}, Flag<false>{});
  }
}

// B or C of a chunk. A complex C is doubled, because y is twice the real part.
template <class T>
inline void load_values(const Common& c, const Projection& from, const Matrix& constant, bool doubled,
                        const Place& at, Index start, int steps, float* to) {
  const float factor = c.complex && doubled ? 2.0f : 1.0f;
  if (constant.data) return load_matrix(c, constant, at, factor, factor, to);
  const T* rows = (const T*)from.data + at.batch * from.batch_stride + at.group * from.group_stride;
  if (!c.complex) return load_projection(rows + start, from.state_stride, c.states, steps, to);
  load_complex_projection(rows + 2 * start, from.state_stride, c.states, steps, to);
  if (!doubled) return;
  for (int i = 0; i < numbers_of(c) * kStateInterval; i += kLanes) store(to + i, 2.0f * load(to + i));
}
// D or delta_bias of the tile's channels; 0 where there is none.
inline Vec load_channels(const float* values, const Place& at) {
  Vec result = {};
  if (values) __builtin_memcpy(&result, values + at.channel, sizeof(float) * (size_t)at.channels);
  return result;
}

// One thread's scratch of the forward.
struct ForwardScratch {
  float *delta, *input, *y, *z;  // tiles: dt, u then dt * u, y, z
  float *rates, *h;              // [number][channel]: A log2(e), the states
  float *B, *C;                  // [number][step], or as the rates
  ForwardScratch(float* at, int numbers) {
    for (float** tile : {&delta, &input, &y, &z}) *tile = at, at += kTileFloats;
    for (float** each : {&rates, &h}) *each = at, at += numbers * kLanes;
    for (float** each : {&B, &C}) *each = at, at += numbers * kStateInterval;
  }
  static constexpr long floats(int numbers) {
    return 4L * kTileFloats + 2L * numbers * kLanes + 2L * numbers * kStateInterval;
  }
};

// The recurrence for kStates states from `first`. y is added up in memory, since several blocks of states
// contribute to it.
template <int kStates, bool kConstantB, bool kConstantC>
inline void advance(const ForwardScratch& s, int first, int steps) {
  Vec h[kStates], rate[kStates];
  for (int n = 0; n < kStates; ++n) {
    h[n] = load(s.h + (first + n) * kLanes);
    rate[n] = load(s.rates + (first + n) * kLanes);
  }
  const float *B = s.B + first * kValueRow<kConstantB>, *C = s.C + first * kValueRow<kConstantC>;
  for (int t = 0; t < steps; ++t) {
    const Vec dt = load(s.delta + t * kLanes), input = load(s.input + t * kLanes);
    Vec y = load(s.y + t * kLanes);
    for (int n = 0; n < kStates; ++n) {
      h[n] = fma(exp2(dt * rate[n]), h[n], input * value_at<kConstantB>(B, n, t));
      y = fma(h[n], value_at<kConstantC>(C, n, t), y);
    }
    store(s.y + t * kLanes, y);
  }
  for (int n = 0; n < kStates; ++n) store(s.h + (first + n) * kLanes, h[n]);
}

// All states in blocks of kStates, then of half as many, and so on.
template <int kStates, bool kConstantB, bool kConstantC>
inline void advance_all(const ForwardScratch& s, int first, int states, int steps) {
  for (; first + kStates <= states; first += kStates)
    advance<kStates, kConstantB, kConstantC>(s, first, steps);
  if constexpr (kStates > 1) advance_all<kStates / 2, kConstantB, kConstantC>(s, first, states, steps);
}

// The recurrence for one complex state: real and imaginary part in two registers.
template <bool kConstantB, bool kConstantC>
inline void advance_complex(const ForwardScratch& s, int state, int steps) {
  const int re = 2 * state * kLanes, im = re + kLanes;
  Complex h{load(s.h + re), load(s.h + im)};
  const Vec rate = load(s.rates + re), angular = load(s.rates + im);
  const float *B = s.B + 2 * state * kValueRow<kConstantB>, *C = s.C + 2 * state * kValueRow<kConstantC>;
  for (int t = 0; t < steps; ++t) {
    const Vec dt = load(s.delta + t * kLanes), input = load(s.input + t * kLanes);
    const Complex a = complex_decay(dt, rate, angular);
    h = {fma(a.re, h.re, fma(-a.im, h.im, input * value_at<kConstantB>(B, 0, t))),
         fma(a.re, h.im, fma(a.im, h.re, input * value_at<kConstantB>(B, 1, t)))};
    const Vec y = fma(h.re, value_at<kConstantC>(C, 0, t), load(s.y + t * kLanes));
    store(s.y + t * kLanes, fma(-h.im, value_at<kConstantC>(C, 1, t), y));
  }
  store(s.h + re, h.re);
  store(s.h + im, h.im);
}

inline void advance_chunk(const Common& c, const ForwardScratch& s, int steps) {
  with_constants(c, [&](auto constant_B, auto constant_C) {
    constexpr bool kB = decltype(constant_B)::value, kC = decltype(constant_C)::value;
    if (!c.complex) return advance_all<kForwardStates, kB, kC>(s, 0, c.states, steps);
    for (int n = 0; n < c.states; ++n) advance_complex<kB, kC>(s, n, steps);
  });
}

// Prepares a chunk's tiles: dt after softplus, dt u, and y = D u.
template <class T>
void load_step_tile(const Forward& scan, const Place& at, const Chunk& chunk, const ForwardScratch& s) {
  const Common& c = scan.common;
  const auto [index, start, steps] = chunk;
  load_tile(row<const T>(c.delta, at.batch, at.channel, start), c.delta.dim_stride, at.channels, steps,
            s.delta);
  load_tile(row<const T>(c.u, at.batch, at.channel, start), c.u.dim_stride, at.channels, steps, s.input);
  load_values<T>(c, c.B, c.constant_B, false, at, start, steps, s.B);
  load_values<T>(c, c.C, c.constant_C, true, at, start, steps, s.C);
  const Vec bias = load_channels(c.delta_bias, at), skip = load_channels(c.D, at);
  for (int t = 0; t < steps; ++t) {
    const Vec u = load(s.input + t * kLanes);
    Vec dt = load(s.delta + t * kLanes) + bias;
    if (c.softplus) dt = softplus(dt).value;
    store(s.delta + t * kLanes, dt);
    store(s.input + t * kLanes, dt * u);
    store(s.y + t * kLanes, c.D ? skip * u : Vec{});  // not 0 * u where there is no D: u may be infinite
  }
}

// Writes out and, with z, the gated out_z.
template <class T>
void store_step_tile(const Forward& scan, const Place& at, const Chunk& chunk, const ForwardScratch& s) {
  const Common& c = scan.common;
  const auto [index, start, steps] = chunk;
  store_tile(row<T>(scan.out, at.batch, at.channel, start), scan.out.dim_stride, at.channels, steps, s.y);
  if (!c.z.data) return;
  load_tile(row<const T>(c.z, at.batch, at.channel, start), c.z.dim_stride, at.channels, steps, s.z);
  for (int t = 0; t < steps; ++t) {
    const Vec z = load(s.z + t * kLanes);
    store(s.z + t * kLanes, load(s.y + t * kLanes) * (z * sigmoid(z)));
  }
  store_tile(row<T>(scan.out_z, at.batch, at.channel, start), scan.out_z.dim_stride, at.channels, steps, s.z);
}

// Puts the last states at the odd places of a row that is twice as wide, with 0 at the even ones: callers
// of upstream's module read x[:, :, -1, 1::2].
inline void store_last_states(const Common& c, const SavedStates& x, const Place& at, const float* h) {
  float* last = saved(x, at, saved_chunks(c.length) - 1);
  const int parts = parts_of(c);
  for (int i = 0; i < at.channels; ++i) {
    float* row = last + i * x.dim_stride;
    for (int n = 0; n < c.states; ++n)
      for (int part = 0; part < parts; ++part) {
        row[2 * parts * n + part] = 0.0f;
        row[2 * parts * n + parts + part] = h[(n * parts + part) * kLanes + i];
      }
  }
}

// Saves the states after each chunk into x. The last chunk of an unpacked sequence has
// another layout (store_last_states()).
template <class T>
void forward_task(const Forward& scan, const TaskGrid& grid, int task, float* scratch) {
  const Common& c = scan.common;
  const Place at = place_of(c, grid, task / grid.tiles, task % grid.tiles);
  const int numbers = numbers_of(c);
  const ForwardScratch s(scratch, numbers);
  load_matrix(c, rates_of(c), at, kLog2E, 1.0f, s.rates);
  load_given(c, c.initial_state, at, s.h);
  const Index chunks = chunk_count(at.length), plain_chunks = c.packed.cu_seqlens ? chunks : chunks - 1;
  for (Index i = 0; i < chunks; ++i) {
    const Chunk chunk = chunk_at(at, i);
    load_step_tile<T>(scan, at, chunk, s);
    advance_chunk(c, s, chunk.steps);
    if (scan.out.data) store_step_tile<T>(scan, at, chunk, s);
    if (scan.x.data && i < plain_chunks)
      store_states(saved(scan.x, at, i), scan.x.dim_stride, at.channels, numbers, s.h);
  }
  if (scan.x.data && !c.packed.cu_seqlens) store_last_states(c, scan.x, at, s.h);
  if (scan.last_state) store_given(c, scan.last_state, at, s.h);
}

}  // namespace
}  // namespace scankit::selective_scan
