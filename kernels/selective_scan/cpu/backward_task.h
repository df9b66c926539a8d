// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cpu/backward_scan.h"

// The backward of a run of tiles: chunk by chunk from the last one, each loaded, scanned (backward_scan.h) and
// written; sums over the steps in LongSum, those of dB and dC in the run's slab.
namespace scankit::selective_scan {
namespace {

// The chunks go from the last one to the first: each tile's load asks for the tile before it.
template <class T, class S>
inline void load_tile_of(const S& sequence, const Place& at, Index start, int steps, float* tile) {
  load_tile<T>(row<const T>(sequence, at.batch, at.channel, start), sequence.dim_stride, at.channels, steps,
               tile, -kStateInterval);
}

// Takes dout through the gate, which gives dy; writes dz, and out_z where it is wanted. With s =
// sigmoid(z), the derivative of z s is s (1 + z (1 - s)).
template <class T>
void gate_gradients(const Backward& scan, const Place& at, Index start, int steps, const BackwardScratch& s) {
  const Common& c = scan.common;
  load_tile_of<T>(c.z, at, start, steps, s.gate);
  load_tile_of<T>(scan.out, at, start, steps, s.work);
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

// Prepares the tiles of a chunk: dt with its slope, u, dy, B and C, and the states before the chunk, which
// come from x or, for the first chunk, from the initial state.
template <class T>
void load_chunk(const Backward& scan, const Place& at, const Chunk& chunk, const BackwardScratch& s) {
  const Common& c = scan.common;
  const auto [index, start, steps] = chunk;
  load_tile_of<T>(c.delta, at, start, steps, s.delta);
  load_tile_of<T>(c.u, at, start, steps, s.u);
  load_tile_of<T>(scan.dout, at, start, steps, s.dy);
  load_values<T>(c, c.B, c.constant_B, false, at, start, steps, s.B);
  load_values<T>(c, c.C, c.constant_C, true, at, start, steps, s.C);
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
  if (index == 0) return load_given(c, c.initial_state, at, s.start);
  load_states(saved(scan.x, at, index - 1), scan.x.dim_stride, at.channels, numbers_of(c), s.start);
}

// Sums of one value for each channel.
struct ChannelSums {
  LongSum dD, ddelta_bias;
};

// Adds the chunk's own sums to those of all chunks, and clears them for the next chunk.
inline void end_sums(float* chunk, LongSum* totals, int count) {
  for (int n = 0; n < count; ++n) {
    add(totals[n], load(chunk + n * kLanes));
    store(chunk + n * kLanes, Vec{});
  }
}

// Writes the totals to memory, one row for each channel. `chunk` is free after end_sums() and
// serves as scratch.
inline void store_sums(const LongSum* totals, int count, float* chunk, int channels, float* to) {
  for (int n = 0; n < count; ++n) store(chunk + n * kLanes, totals[n].sum);
  store_states(to, count, channels, count, chunk);
}

// du = dt (sum of dh B) + D dy, and ddelta = (sum of A q + u (sum of dh B)) times the slope of softplus.
template <class T>
void store_chunk(const Backward& scan, const Place& at, const Chunk& chunk, const BackwardScratch& s,
                 ChannelSums& sums) {
  const Common& c = scan.common;
  const auto [index, start, steps] = chunk;
  const Vec skip = load_channels(c.D, at);
  Vec dD = {}, ddelta_bias = {};
  for (int t = 0; t < steps; ++t) {
    const Vec dt = load(s.delta + t * kLanes), u = load(s.u + t * kLanes), dy = load(s.dy + t * kLanes);
    const Vec input_sum = load(s.input_sum + t * kLanes);
    const Vec ddelta = fma(u, input_sum, load(s.rate_sum + t * kLanes)) * load(s.slope + t * kLanes);
    store(s.gate + t * kLanes, c.D ? fma(skip, dy, dt * input_sum) : dt * input_sum);
    store(s.work + t * kLanes, ddelta);
    dD = fma(dy, u, dD);
    ddelta_bias = ddelta_bias + ddelta;
  }
  add(sums.dD, dD);
  add(sums.ddelta_bias, ddelta_bias);
  store_tile(row<T>(scan.du, at.batch, at.channel, start), scan.du.dim_stride, at.channels, steps, s.gate);
  store_tile(row<T>(scan.ddelta, at.batch, at.channel, start), scan.ddelta.dim_stride, at.channels, steps,
             s.work);
}

// One tile over all chunks of its sequence, from the last to the first. `carry` goes from chunk to chunk
// and ends as the gradient of the initial state.
template <class T>
void backward_tile(const Backward& scan, const Place& at, const Slabs& slabs, const ProjectionSlab& slab,
                   const BackwardScratch& s) {
  const Common& c = scan.common;
  const int numbers = numbers_of(c);
  load_matrix(c, rates_of(c), at, 1.0f, 1.0f, s.A);
  load_matrix(c, rates_of(c), at, kLog2E, 1.0f, s.rates);
  load_given(c, scan.dlast_state, at, s.carry);
  const struct {
    bool wanted;
    float *chunk, *to;
    LongSum* sum;
  } all_sums[] = {{true, s.dA, slabs.dA, s.dA_sum},
                  {c.constant_B.data != nullptr, s.dB, slabs.dB, s.dB_sum},
                  {c.constant_C.data != nullptr, s.dC, slabs.dC, s.dC_sum}};
  for (const auto& each : all_sums) {
    __builtin_memset(each.chunk, 0, sizeof(float) * (size_t)(numbers * kLanes));
    for (int n = 0; n < numbers; ++n) each.sum[n] = {};
  }
  ChannelSums sums = {};
  for (Index i = chunk_count(at.length) - 1; i >= 0; --i) {
    const Chunk chunk = chunk_at(at, i);
    load_chunk<T>(scan, at, chunk, s);
    reverse_chunk(c, s, slab, at.channels, chunk);
    store_chunk<T>(scan, at, chunk, s, sums);
    for (const auto& each : all_sums)
      if (each.wanted) end_sums(each.chunk, each.sum, numbers);
  }
  if (scan.dinitial_state) store_given(c, scan.dinitial_state, at, s.carry);
  const Index first = (Index)at.sequence * c.dim + at.channel;
  for (const auto& each : all_sums)
    if (each.wanted) store_sums(each.sum, numbers, each.chunk, at.channels, each.to + first * numbers);
  if (slabs.dD) __builtin_memcpy(slabs.dD + first, &sums.dD.sum, sizeof(float) * (size_t)at.channels);
  if (slabs.ddelta_bias)
    __builtin_memcpy(slabs.ddelta_bias + first, &sums.ddelta_bias.sum, sizeof(float) * (size_t)at.channels);
}

// Clears only the steps of this sequence: packed sequences share the rows of a slab, and their tasks run
// at the same time.
inline void clear_steps(const Common& c, const Place& at, float* slab) {
  const int parts = parts_of(c);
  for (int n = 0; n < c.states; ++n)
    __builtin_memset(slab + (n * (Index)c.length + at.first) * parts, 0,
                     sizeof(float) * (size_t)(at.length * parts));
}

// One task: a run of tiles that add to the same slab, one after the other, so that no atomics are needed.
template <class T>
void backward_task(const Backward& scan, const TaskGrid& grid, const Slabs& slabs, int task, float* scratch) {
  const Common& c = scan.common;
  const int sequence_group = task / grid.runs, run = task % grid.runs;
  const Place place = place_of(c, grid, sequence_group, 0);
  const Index matrix = (Index)numbers_of(c) * c.length;
  const Index offset = (((Index)run * c.batch + place.batch) * c.groups + place.group) * matrix;
  const ProjectionSlab slab{slabs.dB + offset, slabs.dC + offset, c.length};
  if (!c.constant_B.data) clear_steps(c, place, slab.dB);
  if (!c.constant_C.data) clear_steps(c, place, slab.dC);
  const BackwardScratch s(scratch, numbers_of(c));
  const int end = (run + 1) * grid.tiles_per_task;
  for (int tile = run * grid.tiles_per_task; tile < end && tile < grid.tiles; ++tile)
    backward_tile<T>(scan, place_of(c, grid, sequence_group, tile), slabs, slab, s);
}

}  // namespace
}  // namespace scankit::selective_scan
