// SPDX-License-Identifier: Apache-2.0
#pragma once
// The backward of a tile, last chunk to first. With dh_t = carry_{t+1} + C_t dy_t and carry_t = a_t dh_t, the
// product q = carry_t h_{t-1} serves ddelta (sum of A q) and dA (sum of dt q): no division by a_t, no
// difference of states.
#include "kernels/selective_scan/cpu/forward_task.h"

namespace scankit::selective_scan {
namespace {

// One thread's scratch of the backward.
struct BackwardScratch {
  float *delta, *u, *dy, *slope;  // tiles: dt, u, gradient of y, d dt / d delta
  float *input_sum, *rate_sum;    // tiles: sum over states of dh B, of A q
  float *gate, *work;             // tiles: z and its gradients
  float *A, *rates, *carry, *dA;  // [state][channel]
  float* start;                   // [state][channel]: states before the chunk
  float *B, *C;                   // [state][step]
  float *decays, *states;         // [block state][step][channel], one step more for the states
  BackwardScratch(float* at, int count) {
    for (float** tile : {&delta, &u, &dy, &slope, &input_sum, &rate_sum, &gate, &work})
      *tile = at, at += kTileFloats;
    for (float** each : {&A, &rates, &carry, &dA, &start}) *each = at, at += count * kLanes;
    for (float** each : {&B, &C}) *each = at, at += count * kStateInterval;
    decays = at, at += kBackwardStates * kTileFloats;
    states = at;
  }
  static constexpr long floats(int count) {
    return 8L * kTileFloats + 5L * count * kLanes + 2L * count * kStateInterval +
           kBackwardStates * (2L * kTileFloats + kLanes);
  }
};
inline constexpr int kStateRow = kTileFloats + kLanes;  // one state's h_{-1}, h_0, ... of a chunk

template <int kStates>
inline void recompute(const BackwardScratch& s, int first, int steps) {
  Vec h[kStates], rate[kStates];
  for (int n = 0; n < kStates; ++n) {
    h[n] = load(s.start + (first + n) * kLanes);
    rate[n] = load(s.rates + (first + n) * kLanes);
    store(s.states + n * kStateRow, h[n]);
  }
  const float* B = s.B + first * kStateInterval;
  for (int t = 0; t < steps; ++t) {
    const Vec dt = load(s.delta + t * kLanes), input = dt * load(s.u + t * kLanes);
    for (int n = 0; n < kStates; ++n) {
      const Vec a = exp2(dt * rate[n]);
      h[n] = fma(a, h[n], input * B[n * kStateInterval + t]);
      store(s.decays + n * kTileFloats + t * kLanes, a);
      store(s.states + n * kStateRow + (t + 1) * kLanes, h[n]);
    }
  }
}

// Leaves the terms of dB_t in `decays` and those of dC_t in `states`, one step on, over what each step has
// read last.
template <int kStates>
inline void reverse(const BackwardScratch& s, int first, int steps) {
  Vec carry[kStates], dA[kStates], A[kStates], h[kStates];
  for (int n = 0; n < kStates; ++n) {
    carry[n] = load(s.carry + (first + n) * kLanes);
    dA[n] = load(s.dA + (first + n) * kLanes);
    A[n] = load(s.A + (first + n) * kLanes);
    h[n] = load(s.states + n * kStateRow + steps * kLanes);
  }
  const float *B = s.B + first * kStateInterval, *C = s.C + first * kStateInterval;
  for (int t = steps - 1; t >= 0; --t) {
    const Vec dt = load(s.delta + t * kLanes), input = dt * load(s.u + t * kLanes),
              dy = load(s.dy + t * kLanes);
    Vec input_sum = load(s.input_sum + t * kLanes), rate_sum = load(s.rate_sum + t * kLanes);
    for (int n = 0; n < kStates; ++n) {
      float* decay = s.decays + n * kTileFloats + t * kLanes;
      float* state = s.states + n * kStateRow + t * kLanes;
      const Vec dh = fma(dy, splat(C[n * kStateInterval + t]), carry[n]);
      store(state + kLanes, dy * h[n]);
      carry[n] = dh * load(decay);
      store(decay, dh * input);
      h[n] = load(state);
      const Vec q = carry[n] * h[n];
      input_sum = fma(dh, splat(B[n * kStateInterval + t]), input_sum);
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

// to[t] += the sum over the channels of terms[t]. Channels that are not there may hold NaN where C does: not
// added.
inline void add_over_channels(const float* terms, int channels, int steps, float* to) {
  for (int t = 0; t < steps; t += kLanes) {
    Vec rows[kLanes];
    const int count = steps - t < kLanes ? steps - t : kLanes;
    for (int i = 0; i < kLanes; ++i) rows[i] = i < count ? load(terms + (t + i) * kLanes) : Vec{};
    for (int i = 0; channels < kLanes && i < count; ++i)
      for (int lane = channels; lane < kLanes; ++lane) rows[i][lane] = 0.0f;
    const Vec sums = sum_rows(rows);
    if (count == kLanes) {
      store(to + t, load(to + t) + sums);
    } else {
      for (int i = 0; i < count; ++i) to[t + i] += sums[i];
    }
  }
}

struct ProjectionSlab {
  float *dB, *dC;  // of the task's batch and group: (states, length)
  Index length;
};

template <int kStates>
inline void reverse_all(const BackwardScratch& s, const ProjectionSlab& slab, const Place& at, int first,
                        int states, Index start, int steps) {
  for (; first + kStates <= states; first += kStates) {
    recompute<kStates>(s, first, steps);
    reverse<kStates>(s, first, steps);
    for (int n = 0; n < kStates; ++n) {
      const Index offset = (first + n) * slab.length + start;
      add_over_channels(s.decays + n * kTileFloats, at.channels, steps, slab.dB + offset);
      add_over_channels(s.states + n * kStateRow + kLanes, at.channels, steps, slab.dC + offset);
    }
  }
  if constexpr (kStates > 1) reverse_all<kStates / 2>(s, slab, at, first, states, start, steps);
}

// dy through the gate; writes dz, and out_z where it is wanted.
template <class T>
void gate_gradients(const Backward& scan, const Place& at, Index start, int steps, const BackwardScratch& s) {
  const Common& c = scan.common;
  load_tile(row<const T>(c.z, at.batch, at.channel, start), c.z.dim_stride, at.channels, steps, s.gate);
  load_tile(row<const T>(scan.out, at.batch, at.channel, start), scan.out.dim_stride, at.channels, steps,
            s.work);
  for (int t = 0; t < steps; ++t) {
    const Vec z = load(s.gate + t * kLanes), out = load(s.work + t * kLanes), dout = load(s.dy + t * kLanes);
    const Vec weight = sigmoid(z), silu = z * weight;
    store(s.dy + t * kLanes, dout * silu);
    store(s.gate + t * kLanes, dout * out * (weight * fma(z, 1.0f - weight, splat(1.0f))));
    store(s.work + t * kLanes, out * silu);
  }
  store_tile(row<T>(scan.dz, at.batch, at.channel, start), scan.dz.dim_stride, at.channels, steps, s.gate);
  if (!scan.out_z.data) return;
  store_tile(row<T>(scan.out_z, at.batch, at.channel, start), scan.out_z.dim_stride, at.channels, steps,
             s.work);
}

template <class T>
void load_chunk(const Backward& scan, const Place& at, Index start, int steps, const BackwardScratch& s) {
  const Common& c = scan.common;
  load_tile(row<const T>(c.delta, at.batch, at.channel, start), c.delta.dim_stride, at.channels, steps,
            s.delta);
  load_tile(row<const T>(c.u, at.batch, at.channel, start), c.u.dim_stride, at.channels, steps, s.u);
  load_tile(row<const T>(scan.dout, at.batch, at.channel, start), scan.dout.dim_stride, at.channels, steps,
            s.dy);
  load_projection(rows_of<T>(c.B, at, start), c.B.state_stride, c.states, steps, s.B);
  load_projection(rows_of<T>(c.C, at, start), c.C.state_stride, c.states, steps, s.C);
  if (c.z.data) gate_gradients<T>(scan, at, start, steps, s);
  const Vec bias = load_channels(c.delta_bias, at);
  for (int t = 0; t < steps; ++t) {
    const Vec raw = load(s.delta + t * kLanes) + bias;
    const Softplus step = c.softplus ? softplus(raw) : Softplus{raw, splat(1.0f)};
    store(s.delta + t * kLanes, step.value);
    store(s.slope + t * kLanes, step.slope);
    store(s.input_sum + t * kLanes, Vec{});
    store(s.rate_sum + t * kLanes, Vec{});
  }
  if (start == 0) {
    __builtin_memset(s.start, 0, sizeof(float) * (size_t)(c.states * kLanes));
  } else {
    load_states(saved(scan.x, at, start / kStateInterval - 1), scan.x.dim_stride, at.channels, c.states,
                s.start);
  }
}

struct ChannelSums {
  Vec dD, ddelta_bias;
};

template <class T>
void store_chunk(const Backward& scan, const Place& at, Index start, int steps, const BackwardScratch& s,
                 ChannelSums& sums) {
  const Common& c = scan.common;
  const Vec skip = load_channels(c.D, at);
  for (int t = 0; t < steps; ++t) {
    const Vec dt = load(s.delta + t * kLanes), u = load(s.u + t * kLanes), dy = load(s.dy + t * kLanes);
    const Vec input_sum = load(s.input_sum + t * kLanes);
    const Vec ddelta = fma(u, input_sum, load(s.rate_sum + t * kLanes)) * load(s.slope + t * kLanes);
    store(s.gate + t * kLanes, c.D ? fma(skip, dy, dt * input_sum) : dt * input_sum);
    store(s.work + t * kLanes, ddelta);
    sums.dD = fma(dy, u, sums.dD);
    sums.ddelta_bias = sums.ddelta_bias + ddelta;
  }
  store_tile(row<T>(scan.du, at.batch, at.channel, start), scan.du.dim_stride, at.channels, steps, s.gate);
  store_tile(row<T>(scan.ddelta, at.batch, at.channel, start), scan.ddelta.dim_stride, at.channels, steps,
             s.work);
}

template <class T>
void backward_tile(const Backward& scan, const Place& at, const Slabs& slabs, const ProjectionSlab& slab,
                   const BackwardScratch& s) {
  const Common& c = scan.common;
  load_rates(c, at, 1.0f, s.A);
  load_rates(c, at, kLog2E, s.rates);
  __builtin_memset(s.carry, 0, sizeof(float) * (size_t)(c.states * kLanes));
  __builtin_memset(s.dA, 0, sizeof(float) * (size_t)(c.states * kLanes));
  ChannelSums sums = {};
  for (Index chunk = chunk_count(c.length) - 1; chunk >= 0; --chunk) {
    const Index start = chunk * kStateInterval, left = c.length - start;
    const int steps = left < kStateInterval ? (int)left : kStateInterval;
    load_chunk<T>(scan, at, start, steps, s);
    reverse_all<kBackwardStates>(s, slab, at, 0, c.states, start, steps);
    store_chunk<T>(scan, at, start, steps, s, sums);
  }
  const Index first = (Index)at.batch * c.dim + at.channel;
  store_states(slabs.dA + first * c.states, c.states, 1, at.channels, c.states, s.dA);
  if (slabs.dD) __builtin_memcpy(slabs.dD + first, &sums.dD, sizeof(float) * (size_t)at.channels);
  if (slabs.ddelta_bias)
    __builtin_memcpy(slabs.ddelta_bias + first, &sums.ddelta_bias, sizeof(float) * (size_t)at.channels);
}

template <class T>
void backward_task(const Backward& scan, const TaskGrid& grid, const Slabs& slabs, int task, float* scratch) {
  const Common& c = scan.common;
  const int batch_group = task / grid.runs, run = task % grid.runs;
  const Index matrix = (Index)c.states * c.length;
  const Index offset = ((Index)run * c.batch * c.groups + batch_group) * matrix;
  const ProjectionSlab slab{slabs.dB + offset, slabs.dC + offset, c.length};
  for (Index i = 0; i < matrix; ++i) slab.dB[i] = slab.dC[i] = 0.0f;
  const BackwardScratch s(scratch, c.states);
  const int end = (run + 1) * grid.tiles_per_task;
  for (int tile = run * grid.tiles_per_task; tile < end && tile < grid.tiles; ++tile)
    backward_tile<T>(scan, place_of(c, grid, batch_group, tile), slabs, slab, s);
}

}  // namespace
}  // namespace scankit::selective_scan
