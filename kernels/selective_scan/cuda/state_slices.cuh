// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/state_loop_backward.cuh"

// The backward that loops over the states (state_loop_backward.cuh), of more than 16: in slices of 16. The
// element-wise work of a tile is done once; dt, w, dy, s and r stay in registers for all slices.
//
// Copies need rows at 8-byte places; with O::kOdd rows may start anywhere, and come through registers.
//
// Where channels are few, a team of O::kTeam warps has the same eight channels, and a round is a slice for each
// of its warps. All of them have dt, w and dy; s and r are added up by the first one, which writes all that
// belongs to an element. A round has two barriers: behind the scan, and behind what was staged for the next
// round. What is kept of a slice from tile to tile waits in the workspace meanwhile: dA so far, and the
// gradient that goes on.
namespace scankit::selective_scan {

template <class T, class L, class O>
struct StateSlicesBackward : StateLoopBackward<T, L, BackwardMemory<L, true, O>> {
  using Loop = StateLoopBackward<T, L, BackwardMemory<L, true, O>>;
  using Loop::kCount, Loop::kTogether;
  using Loop::p, Loop::g, Loop::c, Loop::lanes, Loop::memory, Loop::own, Loop::lane;
  using Loop::slab, Loop::slab_row, Loop::put_channel, Loop::stage, Loop::raw_projection, Loop::kept,
      Loop::state_at, Loop::A_at;
  using typename Loop::M, typename Loop::Quarter, typename Loop::Staged, typename Loop::Steps,
      typename Loop::Places;
  static constexpr int kTeam = M::kTeam, kSlice = 16;
  static_assert((kTeam & (kTeam - 1)) == 0);

  // Of the lane's four states of a slice: what is kept from tile to tile, and the state before the tile.
  struct Kept {
    float A[kCount][4], dA[kCount][4], carry[kCount][4], h[kCount][4];
  };

  SCANKIT_DEVICE StateSlicesBackward(const BackwardArguments& arguments, float* shared)
      : Loop(arguments, shared) {}

  // Where in its team a warp is, and which warp of a team is there. The first ones of neighbouring teams are
  // on different schedulers: they have the epilogue.
  SCANKIT_DEVICE static int place_in_team() {
    int thread = static_cast<int>(threadIdx.x);
    if constexpr (kTeam > 1) scankit::selective_scan::keep(thread);
    return (thread / 32 + thread / (32 * kTeam)) % kTeam;
  }
  SCANKIT_DEVICE static bool leads() { return kTeam == 1 || place_in_team() == 0; }
  SCANKIT_DEVICE static int warp_at(int team, int place) {
    return team * kTeam + ((place - team) & (kTeam - 1));
  }

  // Asks for what the round at `step` reads: B and C, and with a tile's first round its rows. The states that it
  // starts from are brought to L2.
  template <Places kPlaces>
  SCANKIT_DEVICE void ask(int round, int step) const {
    if (round == 0) Loop::template ask_rows<kPlaces>(step);
    for (int piece = threadIdx.x; piece < kTeam * Staged::kCount; piece += blockDim.x) {
      const int slice = round * kTeam + piece / Staged::kCount, state = slice * kSlice + piece / 4 % kSlice;
      const char* from = Staged::place_of(c, lanes.place, piece % Staged::kCount, slice);
      Loop::template copy<kPlaces>(raw_projection(piece), from + step * Index{T::kSize},
                                   state < c.states ? c.length - step - piece % 4 * 8 : 0);
    }
    commit_copies();
  }
  SCANKIT_DEVICE void ask_for(int round, int step) const {
    if constexpr (M::kAnyPlaces)
      ask<Loop::kAny>(round, step);
    else if (p.aligned)
      ask<Loop::kWhole>(round, step);
    else
      ask<Loop::kHalves>(round, step);
    if (step == 0) return;
    const int state = first_state(round);
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      if (lanes.has(i) && state < c.states) prefetch(reinterpret_cast<const char*>(saved(i, state, step)));
  }

  // The lane's first state of the warp's slice in a round.
  SCANKIT_DEVICE int first_state(int round) const {
    return (round * kTeam + place_in_team()) * kSlice + lanes.q * 4;
  }
  SCANKIT_DEVICE const float* saved(int i, int state, int step) const {
    const SavedStates x = states_of(c, g.x, p.x_in_workspace, p.workspace);
    return x.data + states_row(x, p.x_odd_rows, lanes.place.batch, lanes.place.channel + lanes.channel(i)) +
           (step / kTile - 1) * x.chunk_stride + state;
  }
  // A place for the lane's states in a slab of (dim, states). A thread reads there only what it wrote.
  SCANKIT_DEVICE float* waiting(Index offset, Index pitch, int i, int state) const {
    return slab(offset) + slab_row() * pitch + (lanes.place.channel + lanes.channel(i)) * Index{c.states} +
           state;
  }
  SCANKIT_DEVICE void load(Kept& of, int round, int step, bool last_tile) const {
    const int state = first_state(round);
    load_A<Quarter>(of.A, c, lanes.place, lanes.group, state);
    if (last_tile) load_given<Quarter>(of.carry, g.dlast_state, c, lanes.place, lanes.group, state);
    if (step == 0) load_given<Quarter>(of.h, c.initial_state, c, lanes.place, lanes.group, state);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int count = lanes.has(i) ? c.states - state : 0;
      load_states<4>(of.dA[i], waiting(p.dA, p.dA_pitch, i, state), last_tile ? 0 : count);
      if (!last_tile) load_states<4>(of.carry[i], waiting(p.carry, c.dim * Index{c.states}, i, state), count);
      if (step > 0) load_states<4>(of.h[i], saved(i, state, step), count);
    }
  }
  // To where state() looks for it (kept): lane 0 goes on with dA.
  SCANKIT_DEVICE void put(const Kept& of) const {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int slot = state_at(lanes.q * 4 + k);
      float* to = kept(slot, lane - lanes.q);
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        A_at(slot)[i] = of.A[i][k];
        to[i] = of.dA[i][k], to[kCount + i] = of.h[i][k];
        to[2 * kCount + i] = to[3 * kCount + i] = to[4 * kCount + i] = to[5 * kCount + i] = 0.0f;
        to[6 * kCount + i] = 0.0f, to[7 * kCount + i] = of.carry[i][k];
      }
    }
  }
  // From there back to the workspace, and what leaves the first tile to the caller.
  SCANKIT_DEVICE void take(int round, bool first_tile) const {
    const int state = first_state(round);
    float dA[kCount][4], carry[kCount][4];
    this->read_states(dA, carry);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int count = lanes.has(i) ? c.states - state : 0;
      store_states<4>(waiting(p.dA, p.dA_pitch, i, state), dA[i], count);
      if (!first_tile) store_states<4>(waiting(p.carry, c.dim * Index{c.states}, i, state), carry[i], count);
    }
    if (first_tile) store_given<Quarter>(g.dinitial_state, carry, c, lanes.place, lanes.group, state);
  }

  // Sums of dB and dC over the block's teams, in their order, as Loop::put_sums has them of warps.
  SCANKIT_DEVICE void put_sums(int round, int step) const {
    const int teams = blockDim.x / (32 * kTeam);
    for (int i = threadIdx.x; i < kTeam * 256; i += blockDim.x) {
      const int place = i / 256, value = i / 8 % 32, half = i / 4 & 1, q = i & 3;
      const int state = (round * kTeam + place) * kSlice + value % kSlice;
      if (state >= c.states) continue;
      const float* from = memory + M::kBlock + M::kPart + value * 32 + (half ^ (value & 1)) * 16 + q * 4;
      float4 sum = *reinterpret_cast<const float4*>(from + warp_at(0, place) * M::kWarp);
#pragma unroll 4
      for (int team = 1; team < teams; ++team) {
        const float4 part = *reinterpret_cast<const float4*>(from + warp_at(team, place) * M::kWarp);
        sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
      }
      put_projection<T>(p, lanes.place, value / kSlice, state, step + q * 8 + half * 4, sum);
    }
  }

  // s and r of the warp, four numbers of each lane side by side, in the place of what is kept: take() has
  // read that, and put() comes behind a barrier.
  static_assert(kCount * 4 * 128 <= M::kA);
  SCANKIT_DEVICE void hand_over(const Steps& now) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
#pragma unroll
      for (int t = 0; t < 8; t += 4) {
        float* to = own + (i * 4 + t / 4) * 128 + lane * 4;
        quad_at(to, 0) = make_float4(now.s[i][t], now.s[i][t + 1], now.s[i][t + 2], now.s[i][t + 3]);
        quad_at(to, 256) = make_float4(now.r[i][t], now.r[i][t + 1], now.r[i][t + 2], now.r[i][t + 3]);
      }
    }
  }
  // Adds those of the team's other warps, in their order.
  SCANKIT_DEVICE void take_over(Steps& now) const {
    const int team = threadIdx.x / (32 * kTeam);
#pragma unroll 1
    for (int place = 1; place < kTeam; ++place) {
      float* from = memory + M::kBlock + warp_at(team, place) * M::kWarp + lane * 4;
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
#pragma unroll
        for (int t = 0; t < 8; t += 4) {
          float s[4], r[4];
          read_quad(from + (i * 4 + t / 4) * 128, 0, s);
          read_quad(from + (i * 4 + t / 4) * 128, 256, r);
#pragma unroll
          for (int k = 0; k < 4; ++k) now.s[i][t + k] += s[k], now.r[i][t + k] += r[k];
        }
      }
    }
  }

  // dD and the bias's gradient so far, of two neighbouring lanes, in the gaps between what is kept of the states:
  // there is no register for them. Only the first warp of a team has them; the others hand over s and r there.
  enum Sum { kOfD, kOfBias };
  SCANKIT_DEVICE float& sum_of(Sum which, int i) const {
    return own[lane / 2 * M::kSlot + 32 * 2 * kCount + which * kCount + i];
  }
  template <bool kAdd>
  SCANKIT_DEVICE void add_to(Sum which, const float (&v)[kCount]) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const float both = v[i] + __shfl_xor_sync(0xffffffffu, v[i], 1);
      if (lane % 2 == 0) sum_of(which, i) = kAdd ? sum_of(which, i) + both : both;
    }
  }

  // As forget_places, also of the warp's channels: what the scan does not need has no register during it.
  SCANKIT_DEVICE void find_again() {
    scankit::selective_scan::keep(lane);
    lanes.group = lane / 4, lanes.q = lane % 4;
    scankit::selective_scan::keep(lanes.place.tile);
    find_channels(lanes.place, p.tiling, L::kWarpChannels, kTeam);
  }

  // What the first round, of the tile at `last`, reads.
  SCANKIT_DEVICE void begin(int last) const {
    const float zero[kCount] = {};
    add_to<false>(kOfD, zero), add_to<false>(kOfBias, zero);
    ask_for(0, last);
    Kept first;
    load(first, 0, last, true);
    put(first);
    wait_for_copies();
    stage();
    __syncthreads();
  }
  SCANKIT_DEVICE void put_channel_sums() const {
    if (!leads()) return;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (g.dD != nullptr) put_channel(lane % 2 == 0 ? sum_of(kOfD, i) : 0.0f, p.dD, i);
      if (g.ddelta_bias != nullptr) put_channel(lane % 2 == 0 ? sum_of(kOfBias, i) : 0.0f, p.dbias, i);
    }
  }
  // A tile's dt, w and dy, and its part of dD.
  SCANKIT_DEVICE void begin_tile(Steps& now, int step) {
    find_again();
    float dD[kCount] = {};
    Loop::prologue(now, dD, step, leads());
    add_to<true>(kOfD, dD);
  }
  // The tile's last round is done: du, ddelta, and the bias's gradient.
  SCANKIT_DEVICE void end_tile(Steps& now, int step) const {
    if constexpr (kTeam > 1) take_over(now);
    float dbias[kCount] = {};
    Loop::epilogue(now, dbias, step);
    add_to<true>(kOfBias, dbias);
  }

  // As Loop::run, round after round in each tile; never cut.
  SCANKIT_DEVICE void run() {
    if (lanes.q == 0) Loop::find_sequences();
    __syncwarp();
    const int last = (static_cast<int>(tile_count(c.length)) - 1) * kTile;
    const int rounds = (c.states + kTeam * kSlice - 1) / (kTeam * kSlice);
    begin(last);
    for (int step = last; step >= 0; step -= kTile) {
      Steps now;
      begin_tile(now, step);
      for (int round = 0; round < rounds; ++round) {
        const bool ends = round + 1 == rounds, more = !ends || step > 0;
        const int next = ends ? 0 : round + 1, next_step = ends ? step - kTile : step;
        if (more) ask_for(next, next_step);
        __syncwarp();
        // Of a team the number of states is another for each warp, and nvcc would not know that it is the same for
        // all lanes of one.
        const int states = kTeam > 1 ? kSlice : c.states - round * kSlice;
        Loop::scan(now, memory + place_in_team() * M::kProjections, states < kSlice ? states : kSlice);
        find_again();
        __syncwarp();
        take(round, step == 0);
        if constexpr (kTeam > 1) {
          __syncwarp();
          if (ends && !leads()) hand_over(now);
        }
        // The sums of all warps are complete, and B and C read.
        __syncthreads();
        find_again();
        Kept kept_next = {};
        if (more) {
          load(kept_next, next, next_step, next_step + kTile >= c.length);
          wait_for_copies();
          stage();
        }
        put_sums(round, step);
        if (ends && leads()) {
          put(kept_next);
          end_tile(now, step);
          kept_next = {};
        }
        __syncthreads();
        if (!ends || !leads()) put(kept_next);
      }
    }
    put_channel_sums();
  }
};

}  // namespace scankit::selective_scan
