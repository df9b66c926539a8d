// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/forward_tile.cuh"

// Few states (up to four, Layout<1, ...>): there is nothing to share out among lanes, so the four lanes
// of a channel have its steps instead, eight each of a tile of 32, with all of its states. A lane
// computes what its steps make of zero, a scan over the four lanes finds what enters them, and the
// recurrence is then done again from that.
//
// Softplus, gate and recurrence of an element are in one thread: u, delta, z, B and C come straight from
// global memory, and the forward uses no shared memory and no barrier. B and C are read by every channel's
// lanes, all of them at the same addresses.
namespace scankit::selective_scan {

// v of the lane `distance` before the caller's (kReverse: behind it) among the four of a channel; where
// there is none, the caller's own v, which it must ignore.
template <bool kReverse>
SCANKIT_DEVICE float from_lane(float v, int distance) {
  if constexpr (kReverse)
    return __shfl_down_sync(0xffffffffu, v, distance, 4);
  else
    return __shfl_up_sync(0xffffffffu, v, distance, 4);
}

// What enters a lane's eight steps (its piece), if `own` leaves the piece where nothing enters it, and
// 2^exponent is the factor for what does. An inclusive scan in two rounds joins neighbouring pieces:
//   (exponent, own) behind (e, o) is (exponent + e, own + o 2^exponent)
// then each lane takes what leaves the one before. `carry` enters the tile and, afterwards, is what leaves
// it, the same in all four lanes.
template <bool kReverse>
SCANKIT_DEVICE float enter_piece(float exponent, float own, float& carry, int q) {
  const int before = kReverse ? 3 - q : q;
#pragma unroll
  for (int distance = 1; distance < 4; distance *= 2) {
    const float other = from_lane<kReverse>(own, distance), sum = from_lane<kReverse>(exponent, distance);
    const float joined = pass_piece(other, exponent, own);
    own = before >= distance ? joined : own;
    exponent += before >= distance ? sum : 0.0f;
  }
  const float leaving = pass_piece(carry, exponent, own), first = carry;
  carry = __shfl_sync(0xffffffffu, leaving, kReverse ? 0 : 3, 4);
  const float entering = from_lane<kReverse>(leaving, 1);
  return before == 0 ? first : entering;
}

// As a tree, for speed; the order is fixed, so bits are too.
SCANKIT_DEVICE float sum_of(const float (&v)[8]) {
  return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
}

// Fills in the decays a of a piece's steps and returns what the piece leaves from zero. `A` has log2 e
// in it.
SCANKIT_DEVICE float scan_piece(const float (&dt)[8], const float (&x)[8], float A, float (&a)[8]) {
  float h = 0.0f;
#pragma unroll
  for (int t = 0; t < 8; ++t) {
    a[t] = exp2_approx(dt[t] * A);
    h = fmaf(a[t], h, x[t]);
  }
  return h;
}

SCANKIT_DEVICE const char* data_of(const Projection& of) { return static_cast<const char*>(of.data); }

// Which pieces a lane has and where they are: lane 4 g + q has steps 8 q to 8 q + 7 of a tile, of the
// channels g, g + 8, ... of the warp. Both directions use it.
template <class T, class L>
struct StepLanes {
  static constexpr int kAhead = 2 * kTile;  // steps that a prefetch is ahead of the load

  const Common& c;
  Place place;
  int group, q;

  SCANKIT_DEVICE StepLanes(const Common& common, const Tiling& tiling, int team = 1)
      : c(common),
        place(find_place(common, tiling, L::kWarpChannels, team)),
        group(threadIdx.x % 32 / 4),
        q(threadIdx.x % 4) {}

  SCANKIT_DEVICE int channel(int i) const { return group + i * L::kGroups; }
  SCANKIT_DEVICE bool has(int i) const { return channel(i) < place.channels; }
  // Steps that exist from the first one of the lane's piece on.
  SCANKIT_DEVICE int count(int i, int step) const { return has(i) ? c.length - step - q * 8 : 0; }
  // Bytes from the data to the thread's first row: its first channel's, or the first state's of B or C.
  template <class S>
  SCANKIT_DEVICE Index row(const S& of) const {
    return offset_of<T>(of, place.batch, place.channel + group);
  }
  SCANKIT_DEVICE Index row(const Projection& of) const {
    return (place.batch * of.batch_stride + place.group * of.group_stride) * T::kSize;
  }
  // `row`: where the lane's piece of the first tile begins. Only pieces that exist are read.
  template <bool kAligned>
  SCANKIT_DEVICE void load(Eight<T> (&to)[L::kChannels], const Sequence& from, const char* row,
                           int step) const {
#pragma unroll
    for (int i = 0; i < L::kChannels; ++i)
      load_piece<kAligned>(to[i], row + step * Index{T::kSize} + further(from, i), count(i, step));
  }
  template <bool kAligned>
  SCANKIT_DEVICE void load(Eight<T> (&to)[L::kPer], const Projection& from, const char* row, int step) const {
#pragma unroll
    for (int s = 0; s < L::kPer; ++s)
      load_piece<kAligned>(to[s], row + (step + s * from.state_stride) * T::kSize,
                           s < c.states ? c.length - step - q * 8 : 0);
  }
  // Brings the lane's pieces to the L2 cache, without a register for each.
  SCANKIT_DEVICE void ask(const Sequence& from, const char* row, int step) const {
#pragma unroll
    for (int i = 0; i < L::kChannels; ++i)
      if (count(i, step) > 0) prefetch(row + step * Index{T::kSize} + further(from, i));
  }
  // Of a piece with count > 0.
  SCANKIT_DEVICE void store(const SequenceOut& to, char* row, bool aligned, const float (&v)[8], int i,
                            int step) const {
    store_piece<T>(aligned, row + step * Index{T::kSize} + further(to, i), v, count(i, step));
  }
  // Bytes from the lane's first channel to its i-th one.
  template <class S>
  SCANKIT_DEVICE static Index further(const S& of, int i) {
    return i * L::kGroups * of.dim_stride * T::kSize;
  }
  SCANKIT_DEVICE float of_channel(const float* from, int i) const {
    return from != nullptr && has(i) ? from[place.channel + channel(i)] : 0.0f;
  }
};

// The forward of few states.
// A thread has eight steps of kChannels channels in registers, with all of their states. Shared memory and
// barriers: none, hence any number of warps a block.
template <class T, class L>
struct StepLanesForward {
  // One tile's pieces as they are in memory. Unpacked where they are used: 16-bit pieces take half the
  // registers until then.
  struct Loaded {
    Eight<T> u[L::kChannels], delta[L::kChannels], z[L::kChannels], B[L::kPer], C[L::kPer];
  };

  const ForwardArguments& p;
  const Common& c;
  StepLanes<T, L> lanes;
  // Bytes from each tensor's data to the lane's piece of the first tile. Offsets and not pointers,
  // for keep().
  Index u_row, delta_row, z_row, B_row, C_row, out_row, out_z_row;

  SCANKIT_DEVICE explicit StepLanesForward(const ForwardArguments& arguments)
      : p(arguments), c(p.forward.common), lanes(c, p.tiling) {
    const int in_tile = lanes.q * 8 * T::kSize;
    u_row = lanes.row(c.u) + in_tile, delta_row = lanes.row(c.delta) + in_tile;
    z_row = lanes.row(c.z) + in_tile, B_row = lanes.row(c.B) + in_tile, C_row = lanes.row(c.C) + in_tile;
    out_row = lanes.row(p.forward.out) + in_tile, out_z_row = lanes.row(p.forward.out_z) + in_tile;
    keep(u_row), keep(delta_row), keep(z_row), keep(B_row), keep(C_row), keep(out_row), keep(out_z_row);
  }

  template <bool kAligned>
  SCANKIT_DEVICE void load(Loaded& to, int step) const {
    lanes.template load<kAligned>(to.delta, c.delta, data_of(c.delta) + delta_row, step);
    lanes.template load<kAligned>(to.u, c.u, data_of(c.u) + u_row, step);
    lanes.template load<kAligned>(to.B, c.B, data_of(c.B) + B_row, step);
    lanes.template load<kAligned>(to.C, c.C, data_of(c.C) + C_row, step);
    if (c.z.data != nullptr) lanes.template load<kAligned>(to.z, c.z, data_of(c.z) + z_row, step);
  }
  // B and C are not: they are few, and all warps of a group read them.
  SCANKIT_DEVICE void ask(int step) const {
    lanes.ask(c.delta, data_of(c.delta) + delta_row, step);
    lanes.ask(c.u, data_of(c.u) + u_row, step);
    if (c.z.data != nullptr) lanes.ask(c.z, data_of(c.z) + z_row, step);
  }
  // One channel's tile, to out and out_z. carry: its states before the tile and, afterwards, behind it.
  SCANKIT_DEVICE void scan(const Loaded& from, const float (&A)[L::kPer], float (&carry)[L::kPer], float bias,
                           float D, int i, int step) const {
    float dt[8], u[8], w[8], y[8];
    discretize<T::kExact>(from.delta[i], bias, c.softplus, lanes.count(i, step), dt);
    T::unpack(from.u[i].w, u);
#pragma unroll
    for (int t = 0; t < 8; ++t) w[t] = dt[t] * u[t], y[t] = D * u[t];
    const float sum = sum_of(dt);
#pragma unroll
    for (int s = 0; s < L::kPer; ++s) {
      float x[8], read[8], a[8];
      T::unpack(from.B[s].w, x);
      T::unpack(from.C[s].w, read);
#pragma unroll
      for (int t = 0; t < 8; ++t) x[t] *= w[t];
      // Twice over the eight steps, from zero and from what enters; the decays are computed once.
      const float own = scan_piece(dt, x, A[s], a);
      float h = enter_piece<false>(A[s] * sum, own, carry[s], lanes.q);
#pragma unroll
      for (int t = 0; t < 8; ++t) {
        h = fmaf(a[t], h, x[t]);
        y[t] = fmaf(read[t], h, y[t]);
      }
    }
    if (p.forward.out.data == nullptr || lanes.count(i, step) <= 0) return;
    lanes.store(p.forward.out, data_of(p.forward.out) + out_row, p.aligned, y, i, step);
    if (c.z.data == nullptr) return;
    float z[8];
    T::unpack(from.z[i].w, z);
#pragma unroll
    for (int t = 0; t < 8; ++t) y[t] *= z[t] * sigmoid(z[t]);
    lanes.store(p.forward.out_z, data_of(p.forward.out_z) + out_z_row, p.aligned, y, i, step);
  }

  SCANKIT_DEVICE void run() {
    float bias[L::kChannels], D[L::kChannels];
#pragma unroll
    for (int i = 0; i < L::kChannels; ++i)
      bias[i] = lanes.of_channel(c.delta_bias, i), D[i] = lanes.of_channel(c.D, i);
    float A[L::kChannels][L::kPer], carry[L::kChannels][L::kPer];
    load_A<L>(A, c, lanes.place, lanes.group, 0);
    load_given<L>(carry, c.initial_state, c, lanes.place, lanes.group, 0);
    const int first = segment_index() * p.segments.tiles * kTile;
    const int end = segment_index() + 1 < p.segments.count ? first + p.segments.tiles * kTile : p.end;
    device::wait_for_last();
    if (segment_index() > 0)
      enter_segment<L, false>(carry, A, p.segments, p.workspace, c, lanes.place, lanes.group, 0);
    SavePlace saved = save_place<L>(states_of(c, p.forward.x, p.x_in_workspace, p.workspace), p.x_odd_rows, c,
                                    lanes.place, first / kTile, lanes.group, 0);
    if (lanes.q != 0) saved.next = nullptr;  // the four lanes have the same
    // No barrier: the warps of a block may drift apart. What the next two tiles need is on its way to L2.
    for (int step = first; step < end; step += kTile) {
      Loaded now;
      if (p.aligned)
        load<true>(now, step);
      else
        load<false>(now, step);
      if (step + lanes.kAhead < end) ask(step + lanes.kAhead);
#pragma unroll
      for (int i = 0; i < L::kChannels; ++i) scan(now, A[i], carry[i], bias[i], D[i], i, step);
      if (step + kTile < c.length) save_states<L>(saved, c, lanes.place, false, lanes.group, 0, carry);
    }
    if (end < c.length) return;
    save_states<L>(saved, c, lanes.place, true, lanes.group, 0, carry);
    if (lanes.q == 0) store_given<L>(p.forward.last_state, carry, c, lanes.place, lanes.group, 0);
  }
};

}  // namespace scankit::selective_scan
