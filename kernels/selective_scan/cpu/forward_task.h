// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <initializer_list>

#include "kernels/selective_scan/cpu/kernel_set.h"
#include "kernels/selective_scan/cpu/tile.h"

namespace scankit::selective_scan {
namespace {

inline constexpr float kLog2E = 0x1.715476p+0f;

template <class T, class S>
inline auto row(const S& sequence, int batch, int channel, Index step) {
  return (T*)sequence.data + batch * sequence.batch_stride + channel * sequence.dim_stride + step;
}
template <class T>
inline const T* rows_of(const Projection& projection, const Place& at, Index step) {
  return (const T*)projection.data + at.batch * projection.batch_stride + at.group * projection.group_stride +
         step;
}
inline float* saved(const SavedStates& x, const Place& at, Index chunk) {
  return x.data + at.batch * x.batch_stride + at.channel * x.dim_stride + chunk * x.chunk_stride;
}
inline Place place_of(const Common& common, const TaskGrid& grid, int batch_group, int tile) {
  const int per_group = common.dim / common.groups, group = batch_group % common.groups;
  const int first = tile * grid.lanes, left = per_group - first;
  return {batch_group / common.groups, group, group * per_group + first,
          left < grid.lanes ? left : grid.lanes};
}

// A of the tile's channels, [state][channel] times `factor`; 0 for channels that are not there.
inline void load_rates(const Common& common, const Place& at, float factor, float* rates) {
  for (int n = 0; n < common.states; ++n)
    for (int i = 0; i < kLanes; ++i)
      rates[n * kLanes + i] =
          i < at.channels
              ? common.A[(at.channel + i) * common.A_dim_stride + n * common.A_state_stride] * factor
              : 0.0f;
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
  float *rates, *h;              // [state][channel]: A log2(e), the states
  float *B, *C;                  // [state][step]
  ForwardScratch(float* at, int states) {
    for (float** tile : {&delta, &input, &y, &z}) *tile = at, at += kTileFloats;
    for (float** each : {&rates, &h}) *each = at, at += states * kLanes;
    for (float** each : {&B, &C}) *each = at, at += states * kStateInterval;
  }
  static constexpr long floats(int states) {
    return 4L * kTileFloats + 2L * states * kLanes + 2L * states * kStateInterval;
  }
};

template <int kStates>
inline void advance(const ForwardScratch& s, int first, int steps) {
  Vec h[kStates], rate[kStates];
  for (int n = 0; n < kStates; ++n) {
    h[n] = load(s.h + (first + n) * kLanes);
    rate[n] = load(s.rates + (first + n) * kLanes);
  }
  const float *B = s.B + first * kStateInterval, *C = s.C + first * kStateInterval;
  for (int t = 0; t < steps; ++t) {
    const Vec dt = load(s.delta + t * kLanes), input = load(s.input + t * kLanes);
    Vec y = load(s.y + t * kLanes);
    for (int n = 0; n < kStates; ++n) {
      h[n] = fma(exp2(dt * rate[n]), h[n], input * B[n * kStateInterval + t]);
      y = fma(h[n], splat(C[n * kStateInterval + t]), y);
    }
    store(s.y + t * kLanes, y);
  }
  for (int n = 0; n < kStates; ++n) store(s.h + (first + n) * kLanes, h[n]);
}

// All states in blocks of kStates, then of half as many, ...
template <int kStates>
inline void advance_all(const ForwardScratch& s, int first, int states, int steps) {
  for (; first + kStates <= states; first += kStates) advance<kStates>(s, first, steps);
  if constexpr (kStates > 1) advance_all<kStates / 2>(s, first, states, steps);
}

template <class T>
void load_step_tile(const Forward& scan, const Place& at, Index start, int steps, const ForwardScratch& s) {
  const Common& c = scan.common;
  load_tile(row<const T>(c.delta, at.batch, at.channel, start), c.delta.dim_stride, at.channels, steps,
            s.delta);
  load_tile(row<const T>(c.u, at.batch, at.channel, start), c.u.dim_stride, at.channels, steps, s.input);
  load_projection(rows_of<T>(c.B, at, start), c.B.state_stride, c.states, steps, s.B);
  load_projection(rows_of<T>(c.C, at, start), c.C.state_stride, c.states, steps, s.C);
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

template <class T>
void store_step_tile(const Forward& scan, const Place& at, Index start, int steps, const ForwardScratch& s) {
  const Common& c = scan.common;
  store_tile(row<T>(scan.out, at.batch, at.channel, start), scan.out.dim_stride, at.channels, steps, s.y);
  if (!c.z.data) return;
  load_tile(row<const T>(c.z, at.batch, at.channel, start), c.z.dim_stride, at.channels, steps, s.z);
  for (int t = 0; t < steps; ++t) {
    const Vec z = load(s.z + t * kLanes);
    store(s.z + t * kLanes, load(s.y + t * kLanes) * (z * sigmoid(z)));
  }
  store_tile(row<T>(scan.out_z, at.batch, at.channel, start), scan.out_z.dim_stride, at.channels, steps, s.z);
}

template <class T>
void forward_task(const Forward& scan, const TaskGrid& grid, int task, float* scratch) {
  const Common& c = scan.common;
  const Place at = place_of(c, grid, task / grid.tiles, task % grid.tiles);
  const ForwardScratch s(scratch, c.states);
  load_rates(c, at, kLog2E, s.rates);
  __builtin_memset(s.h, 0, sizeof(float) * (size_t)(c.states * kLanes));
  for (Index chunk = 0; chunk < chunk_count(c.length); ++chunk) {
    const Index start = chunk * kStateInterval, left = c.length - start;
    const int steps = left < kStateInterval ? (int)left : kStateInterval;
    load_step_tile<T>(scan, at, start, steps, s);
    advance_all<kForwardStates>(s, 0, c.states, steps);
    if (scan.out.data) store_step_tile<T>(scan, at, start, steps, s);
    if (scan.x.data && left > kStateInterval)
      store_states(saved(scan.x, at, chunk), scan.x.dim_stride, 1, at.channels, c.states, s.h);
  }
  if (!scan.x.data) return;
  float* last = saved(scan.x, at, saved_chunks(c.length) - 1);
  for (int i = 0; i < at.channels; ++i)
    for (int n = 0; n < c.states; ++n) last[i * scan.x.dim_stride + 2 * n] = 0.0f;
  store_states(last + 1, scan.x.dim_stride, 2, at.channels, c.states, s.h);
}

}  // namespace
}  // namespace scankit::selective_scan
