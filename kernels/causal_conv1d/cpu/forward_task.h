// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/causal_conv1d/cpu/rows.h"

// The forward of one tile and segment, and the single step of decoding. x contains kWidth - 1 rows of history before the chunk's rows,
// which move along from chunk to chunk.
namespace scankit::causal_conv1d {
namespace {

// The last width - 1 inputs, copied bit by bit. A sequence shorter than that takes the rest from
// the initial states.
template <class T>
inline void store_final(const Forward& conv, const Place& place) {
  const Common& c = conv.common;
  for (int f = 0; f < c.width - 1; ++f) {
    const Index step = (Index)c.length - (c.width - 1) + f;
    T* to = at<T>(conv.final, place, f);
    const Signal& source = step >= 0 ? c.x : c.initial;
    const T* from = source.data ? at<const T>(source, place, step >= 0 ? step : c.width - 1 + step) : nullptr;
    for (int i = 0; i < place.channels; ++i)
      to[i * conv.final.dim_stride] = from ? from[i * source.dim_stride] : T{};
  }
}

template <class T, int kWidth>
void forward_task(const Forward& conv, const TaskGrid& grid, int task) {
  constexpr int kBefore = kWidth - 1;
  const Common& c = conv.common;
  const Place place = place_of(c, grid, task);
  const Filter<kWidth> filter(c, place);
  const Sequences sequences(c, place);
  const Index start = (Index)grid.task_segment(task) * kSegmentSteps;
  const Index end = start + kSegmentSteps < c.length ? start + kSegmentSteps : c.length;
  alignas(64) float x[(kBefore + kChunk) * kLanes], y[kChunk * kLanes];
  for (int i = 0; i < kBefore; ++i) store(x + i * kLanes, input_row<T>(c, place, start - kBefore + i));
  for (Index first = start; first < end; first += kChunk) {
    const int steps = end - first < kChunk ? (int)(end - first) : kChunk;
    load_rows<T>(c.x, place, first, steps, x + kBefore * kLanes);
    for (int t = 0; t < steps; ++t) {
      Vec out = convolve(filter, sequences, first + t, x + (kBefore + t) * kLanes);
      if (c.silu) out = out * selective_scan::sigmoid(out);
      if (sequences.numbers && sequences.of(first + t) < 0) out = Vec{};
      store(y + t * kLanes, out);
    }
    store_rows<T>(conv.out, place, first, steps, y);
    __builtin_memmove(x, x + steps * kLanes, sizeof(float) * kBefore * kLanes);
  }
  if (conv.final.data && end == c.length) store_final<T>(conv, place);
}

// Decoding: one or a few new steps of each row, whose history is in the state. The state is read and
// written by the same task, so that the order matters: history first, then the shift, then the new inputs,
// and `out` last, which may be x.

// A position modulo the ring's length, never negative.
inline int slot_of(Index position, int slots) {
  const Index rest = position % slots;
  return (int)(rest < 0 ? rest + slots : rest);
}

// The state of one entry: a column of slots for each channel, oldest first, or a ring.
template <class T>
struct State {
  const SignalOut& signal;
  const Place place;
  T* slot(Index index) const { return at<T>(signal, place, index); }
  void copy(Index to, const T* from, Index stride) const {
    for (int i = 0; i < place.channels; ++i) slot(to)[i * signal.dim_stride] = from[i * stride];
  }
};

// Copies the inputs of `steps` steps into the state, bit by bit, before `out` is written. Steps that would
// be pushed out again are skipped.
template <class T>
inline void take_in(const Update& conv, const State<T>& state, const Place& place, Index first, int steps,
                    int ring) {
  const Common& c = conv.common;
  const Index length = conv.state_length;
  for (Index t = first; t < first + steps; ++t) {
    if (t < c.length - length) continue;
    const Index to = conv.positions ? slot_of(ring + t, conv.state_length) : length - c.length + t;
    state.copy(to, at<const T>(c.x, place, t), c.x.dim_stride);
  }
}

// The output of padding (a negative entry).
template <class T>
inline void store_zeros(const Update& conv, const Place& place) {
  alignas(64) const float zeros[kLanes] = {};
  for (Index t = 0; t < conv.common.length; ++t) store_rows<T>(conv.out, place, t, 1, zeros);
}

// One tile of one batch entry. x contains kWidth - 1 rows of history before the chunk's rows.
template <class T, int kWidth>
void update_task(const Update& conv, const TaskGrid& grid, int task) {
  constexpr int kBefore = kWidth - 1;
  const Common& c = conv.common;
  const Place place = place_of(c, grid, task);
  const int entry = conv.entries ? conv.entries[place.batch] : place.batch;
  if (entry < 0) return store_zeros<T>(conv, place);
  const Filter<kWidth> filter(c, place);
  const Sequences sequences(c, place);
  const State<T> state{conv.state, {entry, place.channel, place.channels}};
  const int ring = conv.positions ? slot_of(conv.positions[place.batch], conv.state_length) : 0;
  const Signal history{conv.state.data, conv.state.batch_stride, conv.state.dim_stride,
                       conv.state.step_stride};
  alignas(64) float x[(kBefore + kChunk) * kLanes], y[kChunk * kLanes];
  for (int i = 0; i < kBefore; ++i) {
    const int back = kBefore - i;
    const int slot = conv.positions ? slot_of(ring - back, conv.state_length) : conv.state_length - back;
    store(x + i * kLanes, load_row<T>(history, state.place, slot));
  }
  // Without a ring, the inputs that stay move to the front.
  if (!conv.positions)
    for (Index i = 0; i + c.length < conv.state_length; ++i)
      state.copy(i, state.slot(i + c.length), conv.state.dim_stride);
  for (Index first = 0; first < c.length; first += kChunk) {
    const int steps = c.length - first < kChunk ? (int)(c.length - first) : kChunk;
    load_rows<T>(c.x, place, first, steps, x + kBefore * kLanes);
    take_in(conv, state, place, first, steps, ring);
    for (int t = 0; t < steps; ++t) {
      Vec out = convolve(filter, sequences, first + t, x + (kBefore + t) * kLanes);
      if (c.silu) out = out * selective_scan::sigmoid(out);
      store(y + t * kLanes, out);
    }
    store_rows<T>(conv.out, place, first, steps, y);
    __builtin_memmove(x, x + steps * kLanes, sizeof(float) * kBefore * kLanes);
  }
}

}  // namespace
}  // namespace scankit::causal_conv1d
