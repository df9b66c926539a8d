// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/causal_conv1d/cuda/channel.cuh"

// The kernels that take any call, forward and decoding, and what the faster ones share with them.
namespace scankit::causal_conv1d {

// What code is compiled for: the call that Mamba's training makes (width 4, SiLU, no states), or any.
// `reaches`: whether the filter has a tap that many steps back. Taps that a narrow filter lacks are not
// used, not even times 0: an input may be infinite.
template <bool kUsual>
struct CallKind {
  SCANKIT_DEVICE static bool reaches(const Common& c, int back) { return kUsual || back < c.width; }
  SCANKIT_DEVICE static bool silu(const Common& c) { return kUsual || c.silu; }
  SCANKIT_DEVICE static bool states(bool any) { return !kUsual && any; }
};
// takes_usual of launch.h, on the device.
SCANKIT_DEVICE bool is_usual(const Common& c, bool states) {
  return c.width == kMaxWidth && c.silu && !states;
}

// dout silu'(y), the gradient of y before SiLU: silu'(y) = s (1 + y (1 - s)) with s = sigmoid(y).
SCANKIT_DEVICE float through_silu(float dout, float y) {
  const float s = sigmoid(y);
  return dout * (s * fmaf(y, 1.0f - s, 1.0f));
}

// The two forwards that take any call: lanes over channels or over steps, whichever makes neighbouring
// lanes touch neighbouring elements. One thread computes whole steps; nothing is shared between threads.
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

// Decoding: a few steps, mostly one, from a state that has the last inputs. The arithmetic is Channel's.
//
// A thread has one channel of one batch. Each input is taken in before its out is written: out may be x.
// Without `positions` the state is shifted, its oldest inputs fall out at slot 0; with them it is a ring
// of `slots`, in which nothing moves.
template <class T>
struct UpdateWalk {
  const Update& u;
  const Channel<T> row;
  const Index entry;
  const int slots;

  SCANKIT_DEVICE UpdateWalk(const Update& update, Index batch, Index channel, Index entry_)
      : u(update), row(update.common, batch, channel), entry(entry_), slots(update.state_length) {}

  // A slot of the ring, also from a negative number.
  // positions may be any int32, also beyond the ring: the modulus makes each a slot that exists.
  SCANKIT_DEVICE int wrap(Index slot) const {
    const int rest = static_cast<int>(slot % slots);
    return rest < 0 ? rest + slots : rest;
  }
  SCANKIT_DEVICE float state(int slot) const {
    const Signal signal = {u.state.data, u.state.batch_stride, u.state.dim_stride, u.state.step_stride};
    return get<T>(signal, entry, row.channel, slot);
  }
  SCANKIT_DEVICE void set_state(int slot, float x) const { put<T>(u.state, entry, row.channel, slot, x); }

  SCANKIT_DEVICE void run() const {
    const Common& c = u.common;
    const int ring = u.positions != nullptr ? wrap(u.positions[row.batch]) : 0;
    float x[kMaxWidth] = {};  // by how many steps back
#pragma unroll
    for (int back = 1; back < kMaxWidth; ++back)
      if (back < c.width) x[back] = state(u.positions != nullptr ? wrap(Index{ring} - back) : slots - back);
    // From the front, so that each slot is read before it is overwritten.
    if (u.positions == nullptr)
      for (int i = 0; i + c.length < slots; ++i) set_state(i, state(i + c.length));
    for (int step = 0; step < c.length; ++step) {
      x[0] = get<T>(c.x, row.batch, row.channel, step);
      const int before_last = step - (c.length - slots);  // the slot, where there is no ring
      if (before_last >= 0) set_state(u.positions != nullptr ? wrap(Index{ring} + step) : before_last, x[0]);
      put<T>(u.out, row.batch, row.channel, step, row.output(step, [&](int back) { return x[back]; }));
#pragma unroll
      for (int back = kMaxWidth - 1; back > 0; --back) x[back] = x[back - 1];
    }
  }
};

template <class T>
SCANKIT_DEVICE void update_state(const UpdateArguments& p) {
  const Update& u = p.conv;
  const Common& c = u.common;
  const Index tiles = (c.dim + kThreads - 1) / kThreads;
  const Index batch = blockIdx.x / tiles, channel = blockIdx.x % tiles * kThreads + threadIdx.x;
  if (channel >= c.dim) return;
  const Index entry = u.entries != nullptr ? u.entries[batch] : batch;
  if (entry >= 0 && entry < u.state_entries) return UpdateWalk<T>(u, batch, channel, entry).run();
  // Padding, or an entry that is not there: nothing is read or written out of place, and the error shows.
  const float out = entry < 0 ? 0.0f : __uint_as_float(0x7fc00000u);
  for (int step = 0; step < c.length; ++step) put<T>(u.out, batch, channel, step, out);
}

}  // namespace scankit::causal_conv1d
