// SPDX-License-Identifier: Apache-2.0
#pragma once
// One step of decoding of a tile of channels. The state's rows are read, transposed and written once.
#include "kernels/selective_scan/cpu/forward_task.h"

namespace scankit::selective_scan {
namespace {

// One thread's scratch: [state][channel] A log2(e) and the states, [state] B and C.
struct UpdateScratch {
  float *rates, *h, *B, *C;
  UpdateScratch(float* at, int states) {
    for (float** each : {&rates, &h}) *each = at, at += states * kLanes;
    for (float** each : {&B, &C}) *each = at, at += (states + kLanes - 1) / kLanes * kLanes;
  }
  static constexpr long floats(int states) { return 2L * states * kLanes + 2L * (states + kLanes); }
};

// `count` numbers, at most kLanes, with zeros behind them. Never reads past them.
template <class T>
inline Vec load_some(const T* from, int count) {
  if (count == kLanes) return load_elements(from);
  alignas(64) T edge[kLanes] = {};
  __builtin_memcpy(edge, from, sizeof(T) * (size_t)count);
  return load_elements(edge);
}
template <class T>
inline void store_some(T* to, Vec values, int count) {
  if (count == kLanes) return store_elements(to, values);
  alignas(64) T edge[kLanes];
  store_elements(edge, values);
  __builtin_memcpy(to, edge, sizeof(T) * (size_t)count);
}

// The value of each of the tile's channels at the only step.
template <class T>
inline Vec load_step(const Sequence& from, const Place& at) {
  const T* first = row<const T>(from, at.batch, at.channel, 0);
  if (from.dim_stride == 1) return load_some(first, at.channels);
  T values[kLanes];
  for (int i = 0; i < at.channels; ++i) values[i] = first[i * from.dim_stride];
  return load_some(values, at.channels);
}
template <class T>
inline void store_step(const SequenceOut& to, const Place& at, Vec values) {
  T elements[kLanes], *first = row<T>(to, at.batch, at.channel, 0);
  store_elements(elements, values);
  for (int i = 0; i < at.channels; ++i) first[i * to.dim_stride] = elements[i];
}

// D or dt_bias of the tile's channels, of fp32 or T; 0 where it is absent.
template <class T>
inline Vec load_parameter(const void* values, DType dtype, const Place& at) {
  if (!values) return Vec{};
  if (dtype == DType::F32) return load_some((const float*)values + at.channel, at.channels);
  return load_some((const T*)values + at.channel, at.channels);
}

// B or C of the tile's group, one number for each state.
template <class T>
inline void load_step_projection(const StepProjection& from, const Place& at, int states, float* to) {
  const T* values = (const T*)from.data + at.batch * from.batch_stride + at.group * from.group_stride;
  for (int n = 0; n < states; n += kLanes)
    store(to + n, load_some(values + n, states - n < kLanes ? states - n : kLanes));
}

// The tile's rows of the state as [state][channel] in fp32; store_rows() is the reverse.
template <class S>
inline void load_rows(const S* from, Index row_stride, int rows, int states, float* h) {
  for (int n = 0; n < states; n += kLanes) {
    const int count = states - n < kLanes ? states - n : kLanes;
    Vec vectors[kLanes] = {};
    for (int i = 0; i < rows; ++i) vectors[i] = load_some(from + i * row_stride + n, count);
    transpose(vectors);
    for (int i = 0; i < count; ++i) store(h + (n + i) * kLanes, vectors[i]);
  }
}
template <class S>
inline void store_rows(S* to, Index row_stride, int rows, int states, const float* h) {
  for (int n = 0; n < states; n += kLanes) {
    const int count = states - n < kLanes ? states - n : kLanes;
    Vec vectors[kLanes] = {};
    for (int i = 0; i < count; ++i) vectors[i] = load(h + (n + i) * kLanes);
    transpose(vectors);
    for (int i = 0; i < rows; ++i) store_some(to + i * row_stride + n, vectors[i], count);
  }
}

// A log2(e), [state][channel], so that the decay is exp2(dt rate). A may be transposed.
inline void load_rates(const Update& step, const Place& at, float* to) {
  if (step.A_state_stride == 1) {
    load_rows(step.A + at.channel * step.A_dim_stride, step.A_dim_stride, at.channels, step.states, to);
  } else {
    for (int n = 0; n < step.states; ++n) {
      Vec rates = {};
      for (int i = 0; i < at.channels; ++i)
        rates[i] = step.A[(at.channel + i) * step.A_dim_stride + n * step.A_state_stride];
      store(to + n * kLanes, rates);
    }
  }
  for (int n = 0; n < step.states; ++n) store(to + n * kLanes, kLog2E * load(to + n * kLanes));
}

// T is the type of x and of everything but the state, S that of the state. The output is computed from the
// fp32 state, before it is rounded to S.
template <class T, class S>
void update_task(const Update& step, const TaskGrid& grid, int task, float* scratch) {
  Common shape = {};
  shape.dim = step.dim;
  shape.groups = step.groups;
  const Place at = place_of(shape, grid, task / grid.tiles, task % grid.tiles);
  const UpdateScratch s(scratch, step.states);
  S* state = (S*)step.state + at.batch * step.state_batch_stride + at.channel * step.state_dim_stride;
  load_rows(state, step.state_dim_stride, at.channels, step.states, s.h);
  load_rates(step, at, s.rates);
  load_step_projection<T>(step.B, at, step.states, s.B);
  load_step_projection<T>(step.C, at, step.states, s.C);
  const Vec x = load_step<T>(step.x, at);
  Vec dt = load_step<T>(step.dt, at) + load_parameter<T>(step.dt_bias, step.bias_dtype, at);
  if (step.softplus) dt = softplus(dt).value;
  const Vec input = dt * x;
  Vec y = step.D ? load_parameter<T>(step.D, step.D_dtype, at) * x : Vec{};
  for (int n = 0; n < step.states; ++n) {
    const Vec decay = exp2(dt * load(s.rates + n * kLanes));
    const Vec h = fma(decay, load(s.h + n * kLanes), input * splat(s.B[n]));
    y = fma(h, splat(s.C[n]), y);
    store(s.h + n * kLanes, h);
  }
  store_rows(state, step.state_dim_stride, at.channels, step.states, s.h);
  if (step.z.data) {
    const Vec z = load_step<T>(step.z, at);
    y = y * (z * sigmoid(z));
  }
  store_step<T>(step.out, at, y);
}

}  // namespace
}  // namespace scankit::selective_scan
