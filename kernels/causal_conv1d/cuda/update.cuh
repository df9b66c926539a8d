// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/causal_conv1d/cuda/forward.cuh"

// Decoding: a few steps, mostly one, from a state that has the last inputs. The arithmetic is Channel's.
namespace scankit::causal_conv1d {

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
