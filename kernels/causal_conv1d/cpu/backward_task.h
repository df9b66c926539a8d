// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/causal_conv1d/cpu/rows.h"

namespace scankit::causal_conv1d {
namespace {

// Walks forward over the steps of a segment. The gradient of x_t needs dy up to step t + width - 1, so
// that dx follows width - 1 steps behind, and the walk goes that many steps past the segment's end. x, dy
// and dx are rows of the current chunk, with kBefore rows of the previous one in front.
template <class T, int kWidth>
struct BackwardWalk {
  static constexpr int kBefore = kWidth - 1;
  const Backward& conv;
  const Common& c;
  const Place place;
  const Filter<kWidth> filter;
  const Sequences sequences;
  const Index start, end;
  Vec dweight[kWidth] = {}, dbias = {};
  alignas(64) float x[(kBefore + kChunk) * kLanes], dy[(kBefore + kChunk) * kLanes], dx[kChunk * kLanes];

  BackwardWalk(const Backward& backward, const TaskGrid& grid, int task)
      : conv(backward),
        c(backward.common),
        place(place_of(c, grid, task)),
        filter(c, place),
        sequences(c, place),
        start((Index)grid.task_segment(task) * kSegmentSteps),
        end(start + kSegmentSteps < c.length ? start + kSegmentSteps : c.length) {
    for (int i = 0; i < kBefore; ++i) {
      store(x + i * kLanes, input_row<T>(c, place, start - kBefore + i));
      store(dy + i * kLanes, Vec{});
    }
  }

  // dy of `steps` steps from `first` on, behind the rows that were kept from the previous chunk. With
  // silu, y is computed once more.
  void differentiate(Index first, int steps) {
    float* const new_dy = dy + kBefore * kLanes;
    load_rows<T>(c.x, place, first, steps, x + kBefore * kLanes);
    load_rows<T>(conv.dout, place, first, steps, new_dy);
    for (int t = 0; t < steps; ++t) {
      Vec gradient = load(new_dy + t * kLanes);
      if (c.silu) {
        const Vec y = convolve(filter, sequences, first + t, x + (kBefore + t) * kLanes);
        const Vec s = selective_scan::sigmoid(y);
        gradient = gradient * (s * selective_scan::fma(y, 1.0f - s, splat(1.0f)));
      }
      if (sequences.numbers && sequences.of(first + t) < 0) gradient = Vec{};
      store(new_dy + t * kLanes, gradient);
    }
  }

  // Adds up a chunk by itself, and then adds it to the total: shorter sums have smaller rounding errors.
  // Steps past the segment's end belong to the next segment's sums.
  void add_weights(Index first, int steps) {
    Vec weight[kWidth] = {}, bias = {};
    for (int t = 0; t < steps && first + t < end; ++t) {
      const Vec gradient = load(dy + (kBefore + t) * kLanes);
      bias += gradient;
      for (int k = 0; k < kWidth; ++k) {
        const int back = kBefore - k;
        if (sequences.numbers && sequences.of(first + t - back) != sequences.of(first + t)) continue;
        weight[k] = selective_scan::fma(gradient, load(x + (t + k) * kLanes), weight[k]);
      }
    }
    dbias += bias;
    for (int k = 0; k < kWidth; ++k) dweight[k] += weight[k];
  }

  // The gradient of the input at `step`, which may be before the first step; `gradients` points to its dy.
  Vec input_gradient(Index step, const float* gradients) {
    Vec sum = {};
    for (int j = 0; j < kWidth; ++j) {
      if (step + j < 0 || step + j >= c.length) continue;
      if (sequences.numbers && sequences.of(step) != sequences.of(step + j)) continue;
      sum = selective_scan::fma(filter.weight[kBefore - j], load(gradients + j * kLanes), sum);
    }
    const Index final = step - (c.length - kBefore);
    if (conv.dfinal.data && final >= 0) sum += load_row<T>(conv.dfinal, place, final);
    return sum;
  }

  // Writes dx of the steps whose dy is complete now, which are width - 1 behind the chunk. Gradients of
  // inputs before the first step go to dinitial.
  void store_inputs(Index first, int steps) {
    int count = 0;
    Index from = 0;
    for (int t = 0; t < steps; ++t) {
      const Index step = first + t - kBefore;
      if (step >= end || (step < start && (start > 0 || !conv.dinitial.data))) continue;
      const Vec gradient = input_gradient(step, dy + t * kLanes);
      if (step < 0) {
        alignas(64) float row[kLanes];
        store(row, gradient);
        store_rows<T>(conv.dinitial, place, step + kBefore, 1, row);
        continue;
      }
      if (count == 0) from = step;
      store(dx + count++ * kLanes, gradient);
    }
    if (count > 0) store_rows<T>(conv.dx, place, from, count, dx);
  }

  void keep_last(int steps) {
    __builtin_memmove(x, x + steps * kLanes, sizeof(float) * kBefore * kLanes);
    __builtin_memmove(dy, dy + steps * kLanes, sizeof(float) * kBefore * kLanes);
  }

  // After the last step of the sequence, kBefore steps of dx are still open; no later step contributes to
  // them, so that their dy is 0.
  void run() {
    const Index last = end + kBefore < c.length ? end + kBefore : c.length;
    for (Index first = start; first < last; first += kChunk) {
      const int steps = last - first < kChunk ? (int)(last - first) : kChunk;
      differentiate(first, steps);
      add_weights(first, steps);
      store_inputs(first, steps);
      keep_last(steps);
    }
    if (last != c.length) return;
    for (int i = 0; i < kBefore; ++i) store(dy + (kBefore + i) * kLanes, Vec{});
    store_inputs(last, kBefore);
  }
};

// Each task has a slab row of its own, so that the sums need no atomics.
template <class T, int kWidth>
void backward_task(const Backward& conv, const TaskGrid& grid, const Slabs& slabs, int task) {
  BackwardWalk<T, kWidth> walk(conv, grid, task);
  walk.run();
  const Index pitch = (Index)grid.tiles * kLanes;
  const Index slab = (Index)grid.task_batch(task) * grid.segments + grid.task_segment(task);
  float* to = slabs.data + slab * (kWidth + 1) * pitch + (Index)grid.task_tile(task) * kLanes;
  for (int k = 0; k < kWidth; ++k) store(to + k * pitch, walk.dweight[k]);
  store(to + kWidth * pitch, walk.dbias);
}

}  // namespace
}  // namespace scankit::causal_conv1d
