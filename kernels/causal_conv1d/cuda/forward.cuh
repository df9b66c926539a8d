// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/causal_conv1d/cuda/channel.cuh"

// The two forwards that take any call: lanes over channels or over steps, whichever makes neighbouring
// lanes touch neighbouring elements. One thread computes whole steps; nothing is shared between threads.
namespace scankit::causal_conv1d {

inline constexpr int kHistory = kMaxWidth - 1;  // steps before a piece that its outputs need
inline constexpr int kChunk = 8;                // steps that a thread loads before it uses the first

// Lanes over channels, for channel-last tensors: a thread walks a segment of one channel, with a
// window of kHistory + kChunk inputs in registers. grid.x: tiles of kThreads channels fastest,
// then segments, then batches.
template <class T>
SCANKIT_DEVICE void forward_by_channel(const ForwardArguments& p) {
  const Common& c = p.conv.common;
  const Index tiles = (c.dim + kThreads - 1) / kThreads;
  const Index at = blockIdx.x, segment = at / tiles % p.segments, batch = at / tiles / p.segments;
  const Index channel = at % tiles * kThreads + threadIdx.x;
  if (channel >= c.dim) return;
  const Channel<T> row(c, batch, channel);
  const Index start = segment * kChannelSegment;
  const Index end = start + kChannelSegment < c.length ? start + kChannelSegment : c.length;
  float x[kHistory + kChunk];
#pragma unroll
  for (int i = 0; i < kHistory; ++i) x[i] = row.input(start - kHistory + i);
  for (Index first = start; first < end; first += kChunk) {
#pragma unroll
    for (int i = 0; i < kChunk; ++i)
      x[kHistory + i] = first + i < end ? get<T>(c.x, batch, channel, first + i) : 0.0f;
#pragma unroll
    for (int i = 0; i < kChunk; ++i)
      if (first + i < end)
        put<T>(p.conv.out, batch, channel, first + i,
               row.output(first + i, [&](int back) { return x[kHistory + i - back]; }));
#pragma unroll
    for (int i = 0; i < kHistory; ++i) x[i] = x[kChunk + i];  // the next chunk's history
  }
  if (p.conv.final.data != nullptr && end == c.length)
    for (int i = 0; i < c.width - 1; ++i) row.put_final(p.conv.final, i);
}

// Which segment of which row a warp has; not `inside` where the grid has more warps than there
// are segments.
struct Row {
  Index segment, channel, batch;
  bool inside;
};
// Segments fastest, then channels, then batches, kWarps to a block.
SCANKIT_DEVICE Row warp_row(const Common& c, Index segments) {
  const Index at = Index{blockIdx.x} * kWarps + threadIdx.x / 32;
  return {at % segments, at / segments % c.dim, at / segments / c.dim,
          at < segments * c.dim * static_cast<Index>(c.batch)};
}

// Lanes over steps, for everything else: each lane reads its step and the width - 1 before it, although
// its neighbours read those too. With sequence numbers each term is tested (Channel).
template <class T>
SCANKIT_DEVICE void forward_by_step(const ForwardArguments& p) {
  const Common& c = p.conv.common;
  const Row at = warp_row(c, p.segments);
  if (!at.inside) return;
  const int lane = threadIdx.x % 32;
  const Channel<T> row(c, at.batch, at.channel);
  const Index start = at.segment * kStepSegment;
  const Index end = start + kStepSegment < c.length ? start + kStepSegment : c.length;
#pragma unroll 2
  for (Index step = start + lane; step < end; step += 32)
    put<T>(p.conv.out, at.batch, at.channel, step,
           row.output(step, [&](int back) { return row.input(step - back); }));
  if (p.conv.final.data != nullptr && end == c.length && lane < c.width - 1)
    row.put_final(p.conv.final, lane);
}

}  // namespace scankit::causal_conv1d
