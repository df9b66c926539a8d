// SPDX-License-Identifier: Apache-2.0
#pragma once
// A tile: kLanes channels by kStateInterval steps, [step][channel] in fp32, so that a vector holds one step
// of all its channels. Memory holds channels in rows; rows are transposed on the way in and out.
#include <utility>

#include "kernels/selective_scan/cpu/simd.h"
#include "kernels/selective_scan/params.h"

namespace scankit::selective_scan {
namespace {

inline constexpr int kTileFloats = kStateInterval * kLanes;
static_assert(kStateInterval % kLanes == 0);

// The four shuffles select elements of two vectors by the bit kDistance of the lane's number.
// take_low and take_high exchange the halves for one step of a transposition; take_own and take_other
// pick what sum_rows() adds.
template <int kDistance, int... kLane>
inline Vec take_low(Vec a, Vec b, std::integer_sequence<int, kLane...>) {
  return __builtin_shufflevector(a, b, ((kLane & kDistance) ? kLanes + (kLane ^ kDistance) : kLane)...);
}
template <int kDistance, int... kLane>
inline Vec take_high(Vec a, Vec b, std::integer_sequence<int, kLane...>) {
  return __builtin_shufflevector(a, b, ((kLane & kDistance) ? kLanes + kLane : (kLane ^ kDistance))...);
}
template <int kDistance, int... kLane>
inline Vec take_own(Vec a, Vec b, std::integer_sequence<int, kLane...>) {
  return __builtin_shufflevector(a, b, ((kLane & kDistance) ? kLanes + kLane : kLane)...);
}
template <int kDistance, int... kLane>
inline Vec take_other(Vec a, Vec b, std::integer_sequence<int, kLane...>) {
  return __builtin_shufflevector(a, b, ((kLane & kDistance) ? kLanes : 0) + (kLane ^ kDistance)...);
}
using AllLanes = std::make_integer_sequence<int, kLanes>;

// Transposes kLanes rows of kLanes elements in place, by exchanging off-diagonal blocks of half the size
// in each step.
template <int kDistance = kLanes / 2>
inline void transpose(Vec* rows) {
  for (int i = 0; i < kLanes; ++i) {
    if (i & kDistance) continue;
    const Vec a = rows[i], b = rows[i | kDistance];
    rows[i] = take_low<kDistance>(a, b, AllLanes{});
    rows[i | kDistance] = take_high<kDistance>(a, b, AllLanes{});
  }
  if constexpr (kDistance > 1) transpose<kDistance / 2>(rows);
}

// Lane i of the result is the sum over the lanes of rows[i], added in a fixed order.
template <int kDistance = kLanes / 2>
inline Vec sum_rows(const Vec* rows) {
  Vec halves[kDistance];
  for (int i = 0; i < kDistance; ++i) {
    const Vec a = rows[i], b = rows[i + kDistance];
    halves[i] = take_own<kDistance>(a, b, AllLanes{}) + take_other<kDistance>(a, b, AllLanes{});
  }
  if constexpr (kDistance > 1) {
    return sum_rows<kDistance / 2>(halves);
  } else {
    return halves[0];
  }
}

// Loads `rows` channels by `steps` steps into a tile. Where they do not fill it, they are first copied
// into `edge`, kLanes rows of kStateInterval, and the rest of the tile is 0. A full tile also prefetches
// the one of the same channels that is loaded next, `next` steps further on.
template <class T>
inline void load_tile(const T* from, Index row_stride, int rows, int steps, float* tile,
                      Index next = kStateInterval) {
  alignas(64) T edge[kTileFloats];
  if (rows < kLanes || steps < kStateInterval) {
    __builtin_memset(edge, 0, sizeof edge);
    for (int i = 0; i < rows; ++i)
      __builtin_memcpy(edge + i * kStateInterval, from + i * row_stride, sizeof(T) * (size_t)steps);
    from = edge;
    row_stride = kStateInterval;
  } else {
    constexpr int kLine = 64 / sizeof(T);
    for (int i = 0; i < kLanes; ++i)
      for (int t = 0; t < kStateInterval; t += kLine) __builtin_prefetch(from + i * row_stride + next + t);
  }
  for (int t = 0; t < steps; t += kLanes) {
    Vec vectors[kLanes];
    for (int i = 0; i < kLanes; ++i) vectors[i] = load_elements(from + i * row_stride + t);
    transpose(vectors);
    for (int i = 0; i < kLanes; ++i) store(tile + (t + i) * kLanes, vectors[i]);
  }
}

// The reverse of load_tile(): nothing outside of `rows` by `steps` is written to memory.
template <class T>
inline void store_tile(T* to, Index row_stride, int rows, int steps, const float* tile) {
  alignas(64) T edge[kTileFloats];
  const bool whole = rows == kLanes && steps == kStateInterval;
  T* target = whole ? to : edge;
  const Index stride = whole ? row_stride : kStateInterval;
  for (int t = 0; t < steps; t += kLanes) {
    Vec vectors[kLanes];
    for (int i = 0; i < kLanes; ++i) vectors[i] = load(tile + (t + i) * kLanes);
    transpose(vectors);
    for (int i = 0; i < kLanes; ++i) store_elements(target + i * stride + t, vectors[i]);
  }
  if (whole) return;
  for (int i = 0; i < rows; ++i)
    __builtin_memcpy(to + i * row_stride, edge + i * kStateInterval, sizeof(T) * (size_t)steps);
}

// `states` rows of B or C as fp32 rows of kStateInterval, 0 behind `steps`. fp32 is copied, too, because
// rows that are far apart in memory compete for the same sets of the cache.
template <class T>
inline void load_projection(const T* from, Index state_stride, int states, int steps, float* rows) {
  for (int n = 0; n < states; ++n) {
    const T* source = from + n * state_stride;
    float* row = rows + n * kStateInterval;
    alignas(64) T edge[kStateInterval];
    if (steps < kStateInterval) {
      __builtin_memcpy(edge, source, sizeof(T) * (size_t)steps);
      __builtin_memset(edge + steps, 0, sizeof(T) * (size_t)(kStateInterval - steps));
      source = edge;
    }
    for (int t = 0; t < kStateInterval; t += kLanes) store(row + t, load_elements(source + t));
  }
}

// The same for complex numbers, which are pairs of elements in memory: for each state a row of real parts,
// then one of imaginary parts.
template <class T>
inline void load_complex_projection(const T* from, Index state_stride, int states, int steps, float* rows) {
  float pairs[2 * kStateInterval];
  for (int n = 0; n < states; ++n) {
    const int first = 2 * steps < kStateInterval ? 2 * steps : kStateInterval;
    load_projection(from + n * state_stride, 0, 1, first, pairs);
    load_projection(from + n * state_stride + first, 0, 1, 2 * steps - first, pairs + kStateInterval);
    for (int t = 0; t < kStateInterval; ++t)
      for (int part = 0; part < 2; ++part) rows[(2 * n + part) * kStateInterval + t] = pairs[2 * t + part];
  }
}

// The channels and the sequence that a task works on.
struct Place {
  int batch, sequence;           // the row of the sequence's steps, and its number; the same unless packed
  int group, channel, channels;  // channels: first one and how many, at most kLanes
  Index first, length;           // its steps in the row
  Index first_chunk;             // of its saved states
};

// Up to kStateInterval steps of a sequence. `start` is the first one in its row, which
// packed sequences share.
struct Chunk {
  Index chunk, start;
  int steps;
};
inline Chunk chunk_at(const Place& at, Index chunk) {
  const Index done = chunk * kStateInterval, left = at.length - done;
  return {chunk, at.first + done, left < kStateInterval ? (int)left : kStateInterval};
}

// States, which are [state][channel] in a task's scratch, to and from memory, where each channel
// has a row.
inline void store_states(float* to, Index row_stride, int rows, int states, const float* h) {
  for (int n = 0; n < states; n += kLanes) {
    const int count = states - n < kLanes ? states - n : kLanes;
    Vec vectors[kLanes];
    for (int i = 0; i < kLanes; ++i) vectors[i] = i < count ? load(h + (n + i) * kLanes) : Vec{};
    transpose(vectors);
    for (int i = 0; i < kLanes && i < rows; ++i) {
      if (count == kLanes)
        store(to + i * row_stride + n, vectors[i]);
      else
        __builtin_memcpy(to + i * row_stride + n, &vectors[i], sizeof(float) * (size_t)count);
    }
  }
}
inline void load_states(const float* from, Index row_stride, int rows, int states, float* h) {
  for (int n = 0; n < states; n += kLanes) {
    const int count = states - n < kLanes ? states - n : kLanes;
    Vec vectors[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      vectors[i] = Vec{};
      if (i >= rows) continue;
      if (count == kLanes)
        vectors[i] = load(from + i * row_stride + n);
      else
        __builtin_memcpy(&vectors[i], from + i * row_stride + n, sizeof(float) * (size_t)count);
    }
    transpose(vectors);
    for (int i = 0; i < count; ++i) store(h + (n + i) * kLanes, vectors[i]);
  }
}

}  // namespace
}  // namespace scankit::selective_scan
