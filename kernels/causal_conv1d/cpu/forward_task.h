// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/causal_conv1d/cpu/rows.h"

// The forward of one tile and segment. x contains kWidth - 1 rows of history before the chunk's rows,
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

}  // namespace
}  // namespace scankit::causal_conv1d
