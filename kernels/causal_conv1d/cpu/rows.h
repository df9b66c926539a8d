// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows of a tile: one vector of kLanes channels a step, in fp32, to and from tensors of any strides.
#include "kernels/causal_conv1d/cpu/conv.h"
#include "kernels/selective_scan/cpu/tile.h"

namespace scankit::causal_conv1d {
namespace {

using selective_scan::BFloat16;
using selective_scan::Half;
using selective_scan::kLanes;
using selective_scan::load;
using selective_scan::load_elements;
using selective_scan::splat;
using selective_scan::store;
using selective_scan::store_elements;
using selective_scan::Vec;

inline constexpr int kChunk = selective_scan::kStateInterval;  // steps that are worked on at once

// The channels of a tile, in one batch entry.
struct Place {
  int batch, channel, channels;  // channels: how many, at most kLanes
};

template <class T, class S>
inline auto at(const S& signal, const Place& place, Index step) {
  return (T*)signal.data + place.batch * signal.batch_stride + place.channel * signal.dim_stride +
         step * signal.step_stride;
}

// Loads `steps` rows, at most kChunk. Adjacent steps are transposed as a tile; adjacent channels are
// loaded as vectors; other strides go element by element.
template <class T>
inline void load_rows(const Signal& signal, const Place& place, Index first, int steps, float* rows) {
  const T* from = at<const T>(signal, place, first);
  if (signal.step_stride == 1 && steps > 1)
    return selective_scan::load_tile(from, signal.dim_stride, place.channels, steps, rows);
  for (int t = 0; t < steps; ++t, from += signal.step_stride) {
    if (signal.dim_stride == 1 && place.channels == kLanes) {
      store(rows + t * kLanes, load_elements(from));
      continue;
    }
    T edge[kLanes] = {};
    for (int i = 0; i < place.channels; ++i) edge[i] = from[i * signal.dim_stride];
    store(rows + t * kLanes, load_elements(edge));
  }
}

template <class T>
inline void store_rows(const SignalOut& signal, const Place& place, Index first, int steps,
                       const float* rows) {
  T* to = at<T>(signal, place, first);
  if (signal.step_stride == 1 && steps > 1)
    return selective_scan::store_tile(to, signal.dim_stride, place.channels, steps, rows);
  for (int t = 0; t < steps; ++t, to += signal.step_stride) {
    if (signal.dim_stride == 1 && place.channels == kLanes) {
      store_elements(to, load(rows + t * kLanes));
      continue;
    }
    T edge[kLanes];
    store_elements(edge, load(rows + t * kLanes));
    for (int i = 0; i < place.channels; ++i) to[i * signal.dim_stride] = edge[i];
  }
}

template <class T>
inline Vec load_row(const Signal& signal, const Place& place, Index step) {
  alignas(64) float row[kLanes];
  load_rows<T>(signal, place, step, 1, row);
  return load(row);
}

// One number a channel.
template <class T>
inline Vec load_channels_as(const void* data, Index stride, const Place& place) {
  T edge[kLanes] = {};
  for (int i = 0; i < place.channels; ++i) edge[i] = ((const T*)data)[(place.channel + i) * stride];
  return load_elements(edge);
}
inline Vec load_channels(DType dtype, const void* data, Index offset, Index stride, const Place& place) {
  switch (dtype) {
    case DType::F16:
      return load_channels_as<Half>((const Half*)data + offset, stride, place);
    case DType::BF16:
      return load_channels_as<BFloat16>((const BFloat16*)data + offset, stride, place);
    case DType::F32:
      break;
  }
  return load_channels_as<float>((const float*)data + offset, stride, place);
}

// Weights and bias of a tile.
template <int kWidth>
struct Filter {
  Vec weight[kWidth], bias;
  Filter(const Common& c, const Place& place) : bias{} {
    for (int k = 0; k < kWidth; ++k)
      weight[k] =
          load_channels(c.weight_dtype, c.weight, k * c.weight_tap_stride, c.weight_dim_stride, place);
    if (c.bias) bias = load_channels(c.weight_dtype, c.bias, 0, 1, place);
  }
};

// The number of the sequence that a step belongs to; negative for padding. Steps before the first belong
// to the sequence of step 0 if initial states are given, else to none.
struct Sequences {
  const int* numbers;  // of the batch; null: all one
  int before;
  Sequences(const Common& c, const Place& place)
      : numbers(c.sequence ? c.sequence + (Index)place.batch * c.length : nullptr),
        before(numbers && c.initial.data && c.length > 0 ? numbers[0] : -1) {}
  int of(Index step) const { return step < 0 ? before : numbers[step]; }
};

// Row `step` of the input, also before the first step.
template <class T>
inline Vec input_row(const Common& c, const Place& place, Index step) {
  if (step >= 0) return load_row<T>(c.x, place, step);
  return c.initial.data ? load_row<T>(c.initial, place, c.width - 1 + step) : Vec{};
}

// y at `step`, whose row is at `x` with its width - 1 predecessors in front of it. Terms of other
// sequences are left out.
template <int kWidth>
inline Vec convolve(const Filter<kWidth>& filter, const Sequences& sequences, Index step, const float* x) {
  Vec y = filter.bias;
  for (int k = 0; k < kWidth; ++k) {
    const int back = kWidth - 1 - k;
    if (sequences.numbers && sequences.of(step - back) != sequences.of(step)) continue;
    y = selective_scan::fma(filter.weight[k], load(x - back * kLanes), y);
  }
  return y;
}

inline Place place_of(const Common& c, const TaskGrid& grid, int task) {
  const int first = grid.task_tile(task) * kLanes, left = c.dim - first;
  return {grid.task_batch(task), first, left < kLanes ? left : kLanes};
}

}  // namespace
}  // namespace scankit::causal_conv1d
