// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/backward_tile.cuh"
#include "kernels/selective_scan/cuda/general_forward.cuh"

// The backward of general.cuh: within a tile the states at every fourth step are replayed, then the
// quads run in reverse, as in backward_tile.cuh. With ' for the conjugate, and dy doubled for complex
// numbers, since y = 2 Re(C h):
//   g_t = C_t' dy_t + a_(t+1)' g_(t+1);  dB_t = w_t g_t, dC_t = dy_t h_t' summed over the channels
//   carry = a_t' g_t;  dA = sum over steps of dt carry h_(t-1)';  du gets dt Re(g B')
//   ddelta gets u Re(g B') + Re(carry h_(t-1)' A')
// A block takes a run of channel tiles, one after the other, and adds their dB and dC up in its own
// slab, each number always by the same thread: fewer slabs than tiles, in a fixed order. What goes
// from tile to tile of the length (carry, dA, and dB and dC of constant ones) waits in the workspace,
// as slices share the registers.
namespace scankit::selective_scan {

// One long file, for backward.cuh's reason.
template <class T, bool kComplex>
struct GeneralBackward : General<T, kComplex> {
  using G = General<T, kComplex>;
  using N = Number<kComplex>;
  using G::c, G::place, G::lane, G::q, G::ch, G::kParts;
  using Sum = ChannelSum<Layout<kGeneralLanes, kGeneralPer, 1>, 8 * kParts>;
  // A warp's sums of a quad, [state][step][part] of dB and then of dC. dB's replace the warp's states before
  // the quad, which are in registers by then; dC's are in a ring of four quads, two pairs in turn.
  static constexpr int kHalf = kGeneralSlice * 4 * kParts;
  static constexpr int kKept = kGeneralPer * kParts * 32;  // states of a warp before a quad
  static_assert(kHalf == kKept);

  const GeneralBackwardArguments& p;
  const Backward& g;
  int run;                     // of the group's runs
  float *dt, *w, *dy, *s, *r;  // rows of the warp's channels
  float* kept;  // of all warps, [warp][quad][kKept], then [warp][four quads][kHalf], and two a thread

  // A place in the workspace.
  SCANKIT_DEVICE float* slab(Index offset) const {
    return reinterpret_cast<float*>(static_cast<char*>(p.workspace) + offset);
  }

  // dy = v silu(z), in place; writes dz and, if wanted, out_z. As in backward.cuh.
  SCANKIT_DEVICE void ungate(float (&v)[8], int step) const {
    float z[8], out[8], dz[8];
    G::fetch(z, c.z, step);
    G::fetch(out, g.out, step);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float gate = sigmoid(z[j]), silu = z[j] * gate;
      dz[j] = v[j] * out[j] * gate * fmaf(z[j], 1.0f - gate, 1.0f);
      v[j] *= silu;
      out[j] *= silu;
    }
    G::store(g.dz, dz, step);
    if (g.out_z.data != nullptr) G::store(g.out_z, out, step);
  }

  // Rows of dt, w and dy from the lane's piece at `step`, and zeros to s and r, which the slices add to.
  SCANKIT_DEVICE void prologue(float bias, int step) const {
    if (!G::has_piece()) return;
    const int count = G::piece_count(step);
    Eight<T> delta;
    float d[8], u[8], v[8], zero[8] = {};
    load_some(delta, G::piece_of(c.delta, step), count);
    discretize<true>(delta, bias, c.softplus, count, d);
    G::fetch(u, c.u, step);
    write_eight(dt + G::piece_at(), d);
#pragma unroll
    for (int j = 0; j < 8; ++j) d[j] *= u[j];
    write_eight(w + G::piece_at(), d);
    G::fetch(v, g.dout, step);
    if (c.z.data != nullptr) ungate(v, step);
    write_eight(dy + G::piece_at(), v);
    write_eight(s + G::piece_at(), zero);
    write_eight(r + G::piece_at(), zero);
  }

  // The thread's sums over the tiles of dD (which 0) and of the bias's gradient (1), in shared memory:
  // there are no registers for them.
  SCANKIT_DEVICE float& total(int which) const {
    return kept[(8 * kKept + 4 * kHalf) * kGeneralWarps + which * kGeneralThreads + threadIdx.x];
  }
  // du, ddelta and the sums, from the rows of s and r. r has log2 e in it, from the rates.
  SCANKIT_DEVICE void epilogue(float bias, float D, int step) const {
    const int count = G::piece_count(step);
    if (count <= 0) return;
    float dD = 0.0f, dbias = 0.0f;
    float u[8], delta[8], input[8], rate[8], step_size[8], v[8];
    G::fetch(u, c.u, step);  // read again: 16 registers less for the scan
    G::fetch(delta, c.delta, step);
    read_eight(s + G::piece_at(), input);
    read_eight(r + G::piece_at(), rate);
    read_eight(dt + G::piece_at(), step_size);
    read_eight(dy + G::piece_at(), v);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      rate[j] = fmaf(kLn2, rate[j], u[j] * input[j]);
      if (c.softplus) rate[j] *= sigmoid(delta[j] + bias);
      if (j < count) {
        dbias += rate[j];
        dD = fmaf(v[j], u[j], dD);
      }
      input[j] *= step_size[j];
      if (c.D != nullptr) input[j] = fmaf(D, v[j], input[j]);
    }
    G::store(g.ddelta, rate, step);
    G::store(g.du, input, step);
    total(0) += dD, total(1) += dbias;
  }

  // The states before the tile that starts at `step`.
  SCANKIT_DEVICE N load_start(int step, int state) const {
    if (step == G::begin) return G::state_of(c.initial_state, state);
    if (!G::exists(state)) return {};
    const SavedStates x = general_states_of(c, g.x, p.x_in_workspace, p.workspace);
    return load_number<kComplex>(x.data + place.batch * x.batch_stride + (place.channel + ch) * x.dim_stride +
                                 (G::first_chunk() + (step - G::begin) / kTile - 1) * x.chunk_stride +
                                 state * kParts);
  }

  // A number of a slice that waits in the workspace for the tile before, [sequence][dim][states]. A thread
  // reads what it wrote itself, so nothing has to be ordered between threads.
  SCANKIT_DEVICE float* waiting(Index offset, int state) const {
    return slab(offset) + G::entry * p.matrix_pitch +
           ((place.channel + ch) * Index{c.states} + state) * kParts;
  }
  // Has the thread's place in the warp computed again: what is derived from it, addresses in global memory
  // above all, would be held over the scans and spill.
  SCANKIT_DEVICE void find_again() {
    scankit::selective_scan::keep(lane);
    G::place_lane();
  }
  // Zero in the first tile that is computed (`first`), where nothing waits yet.
  SCANKIT_DEVICE N recall(Index offset, int state, bool first) const {
    if (first || !G::exists(state)) return {};
    return load_number<kComplex>(waiting(offset, state));
  }
  SCANKIT_DEVICE void keep(Index offset, int state, const N& v) const {
    if (G::exists(state)) store_number<kComplex>(waiting(offset, state), v);
  }

  // A warp's place for a quad: its states before the quad and then dB's sums (which 0), or dC's (1).
  SCANKIT_DEVICE float* part(int warp, int quad, int which) const {
    if (which == 0) return kept + (warp * 8 + quad) * kKept;
    return kept + (8 * kGeneralWarps) * kKept + (warp * 4 + quad % 4) * kHalf;
  }
  // The thread's state s before a quad; its imaginary part is 32 floats further.
  SCANKIT_DEVICE float* own_kept(int quad, int s) const {
    return part(threadIdx.x / 32, quad, 0) + s * kParts * 32 + lane;
  }
  // The thread's state s before a quad to its place, and back. No barrier: a thread reads only what it
  // wrote.
  SCANKIT_DEVICE void keep_quad(int quad, int s, const N& h) const {
    own_kept(quad, s)[0] = h.re;
    if constexpr (kComplex) own_kept(quad, s)[32] = h.im;
  }
  SCANKIT_DEVICE N quad_start(int quad, int s) const {
    N h = {};
    h.re = own_kept(quad, s)[0];
    if constexpr (kComplex) h.im = own_kept(quad, s)[32];
    return h;
  }

  // What a thread has of one state; B and C where constant. angle: A's imaginary part, times log2 e as its
  // real one is in `rate`, so that both parts of r have the same factor.
  struct State {
    Rate<kComplex> rate;
    float angle;
    N B, C, carry, dA, dB, dC;
  };
  using Pair = State[kGeneralPer];

  // From the states h before the tile: those before each of its eight quads.
  template <bool kConstant>
  SCANKIT_DEVICE void replay(const Pair& states, N (&h)[kGeneralPer]) const {
#pragma unroll 1
    for (int quad = 0; quad < 8; ++quad) {
      float dt4[4], w4[4];
      read_quad(dt + ch * kPitch, quad * 4, dt4);
      read_quad(w + ch * kPitch, quad * 4, w4);
#pragma unroll
      for (int s = 0; s < kGeneralPer; ++s) {
        keep_quad(quad, s, h[s]);
        if (quad == 7) continue;
        N b[4];
        G::template values<kConstant>(b, 0, states[s].B, G::own_state(s), quad);
#pragma unroll
        for (int t = 0; t < 4; ++t)
          h[s] = advance<kComplex>(decay<kComplex, T::kExact>(dt4[t], states[s].rate), h[s], w4[t], b[t]);
      }
    }
  }

  // Adds four of the block's sums for the quads `quad` and `quad` + 1 to the slab: over the warps, in
  // their order, for one row (dB or dC, a state) and one part of it. A place always belongs to the same
  // thread, as that adds to what it wrote. `first`: the run's first channel tile, which overwrites. Places
  // behind the sequence's end belong to another sequence, and so to another block: they are not touched.
  SCANKIT_DEVICE void add_to_slab(int first_state, int step, int quad, bool first) const {
    const int i = threadIdx.x, row = i / (2 * kParts), which = row / kGeneralSlice;
    const int state = first_state + row % kGeneralSlice;
    if (which > 1 || state >= c.states || (which == 0 ? c.constant_B : c.constant_C).data != nullptr) return;
    const int own_quad = quad + i / kParts % 2, at = step + own_quad * 4;
    const Index left = Index{G::end - at} * kParts - i % kParts * 4;
    if (left <= 0) return;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
    for (int warp = 0; warp < kGeneralWarps; ++warp) {
      const float4 v =
          quad_at(part(warp, own_quad, which), row % kGeneralSlice * 4 * kParts + i % kParts * 4);
      sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    }
    const Index line = ((Index{run} * c.batch + place.batch) * c.groups + place.group) * c.states + state;
    float* to = slab(which == 0 ? p.dB : p.dC) + line * p.pitch + Index{at} * kParts + i % kParts * 4;
    if (left >= 4 && misalignment(to) == 0) {
      if (!first) {
        const float4 v = quad_at(to, 0);
        sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
      }
      quad_at(to, 0) = sum;
      return;
    }
    const float v[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (k < left) to[k] = first ? v[k] : to[k] + v[k];
  }

  SCANKIT_DEVICE static N add_product(N sum, float x, const N& y) {
    sum.re = fmaf(x, y.re, sum.re);
    if constexpr (kComplex) sum.im = fmaf(x, y.im, sum.im);
    return sum;
  }
  // Four steps of the thread's state s, forward from h and then back from state.carry, which is brought up
  // to date with dA. Adds to v, its parts of dB and dC, to input (s, for du) and rate (r, for ddelta), and
  // to the constant ones' sums; dC's is that of the conjugate, dy h, until load_constants or
  // keep_constants turns it over.
  template <bool kConstant>
  SCANKIT_DEVICE void reverse_four(State& state, int s, int first_state, int quad, N h, const float (&dt4)[4],
                                   const float (&w4)[4], const float (&dy4)[4], float (&input)[4],
                                   float (&rate)[4], float (&v)[8 * kParts]) const {
    const bool is_state = first_state + G::own_state(s) < c.states;
    N b[4], cs[4], a[4], before[4];
    G::template values<kConstant>(b, 0, state.B, G::own_state(s), quad);
    G::template values<kConstant>(cs, 1, state.C, G::own_state(s), quad);
#pragma unroll
    for (int t = 0; t < 4; ++t) {
      a[t] = decay<kComplex, T::kExact>(dt4[t], state.rate);
      before[t] = h;
      h = advance<kComplex>(a[t], h, w4[t], b[t]);
      v[(4 + t) * kParts] = fmaf(dy4[t], h.re, v[(4 + t) * kParts]);
      if constexpr (kComplex) {
        v[(4 + t) * 2 + 1] = fmaf(-dy4[t], h.im, v[(4 + t) * 2 + 1]);
      }
      if constexpr (kConstant) state.dC = add_product(state.dC, dy4[t], h);
    }
#pragma unroll
    for (int t = 3; t >= 0; --t) {
      N dh = {};
      dh.re = fmaf(cs[t].re, dy4[t], state.carry.re);
      if constexpr (kComplex) dh.im = fmaf(-cs[t].im, dy4[t], state.carry.im);
      v[t * kParts] = fmaf(dh.re, w4[t], v[t * kParts]);
      if constexpr (kComplex) {
        v[t * 2 + 1] = fmaf(dh.im, w4[t], v[t * 2 + 1]);
      }
      if constexpr (kConstant) state.dB = add_product(state.dB, w4[t], dh);
      state.carry = times_conjugate<kComplex>(dh, a[t]);
      const N from_rate = times_conjugate<kComplex>(state.carry, before[t]);
      // A lane without a state has zeros, of which an infinite step makes NaN: not for sums over
      // the states.
      if (is_state) {
        input[t] = inner<kComplex>(dh, b[t], input[t]);
        rate[t] = fmaf(from_rate.re, state.rate.size, rate[t]);
        if constexpr (kComplex) rate[t] = fmaf(from_rate.im, state.angle, rate[t]);
      }
      state.dA.re = fmaf(dt4[t], from_rate.re, state.dA.re);
      if constexpr (kComplex) state.dA.im = fmaf(dt4[t], from_rate.im, state.dA.im);
    }
  }

  // A tile's quads from the last one. s and r go to the warp's rows; dB and dC through shared memory to
  // the slab, two quads at a time. `first`: as in add_to_slab.
  template <bool kConstant>
  SCANKIT_DEVICE void reverse(Pair& states, int first_state, int step, bool first) const {
#pragma unroll 1
    for (int quad = 7; quad >= 0; --quad) {
      float dt4[4], w4[4], dy4[4], input[4] = {}, rate[4] = {};
      float v[8 * kParts] = {};
      read_quad(dt + ch * kPitch, quad * 4, dt4);
      read_quad(w + ch * kPitch, quad * 4, w4);
      read_quad(dy + ch * kPitch, quad * 4, dy4);
      N h[kGeneralPer];
#pragma unroll
      for (int i = 0; i < kGeneralPer; ++i) h[i] = quad_start(quad, i);
#pragma unroll
      for (int t = 0; t < 4; ++t) dy4[t] *= kComplex ? 2.0f : 1.0f;  // y is 2 Re(C h)
      __syncwarp();                                                  // the sums overwrite the states
      Sum::template add_states<0, kGeneralPer, true>(v, [&](int i, float(&to)[8 * kParts]) {
        reverse_four<kConstant>(states[i], i, first_state, quad, h[i], dt4, w4, dy4, input, rate, to);
      });
      Sum::template add<8 * kParts, kGeneralLanes * kGeneralPer>(v, lane);
      float* to = part(threadIdx.x / 32, quad, ch / 2) + (q + kGeneralLanes * (ch % 2)) * 4 * kParts;
#pragma unroll
      for (int i = 0; i < kParts; ++i)
        quad_at(to, 4 * i) = make_float4(v[4 * i], v[4 * i + 1], v[4 * i + 2], v[4 * i + 3]);
      sum_lanes<kGeneralLanes>(input, q);
      sum_lanes<kGeneralLanes>(rate, q);
      put_lanes<kGeneralLanes, true>(s + ch * kPitch, quad * 4, input, q);
      put_lanes<kGeneralLanes, true>(r + ch * kPitch, quad * 4, rate, q);
      if (quad % 2 != 0) continue;
      // Whoever is past the barrier writes the sums of the next two quads to other places: no second barrier.
      __syncthreads();
      add_to_slab(first_state, step, quad, first);
    }
  }

  // Constant B and C of the thread's states, and the sums of their gradients so far.
  SCANKIT_DEVICE void load_constants(Pair& states, int first_state, bool last_tile) const {
#pragma unroll
    for (int i = 0; i < kGeneralPer; ++i) {
      const int state = first_state + G::own_state(i);
      if (c.constant_B.data != nullptr) {
        states[i].B = G::number_of(c.constant_B, state);
        states[i].dB = recall(p.dB, state, last_tile);
      }
      if (c.constant_C.data != nullptr) {
        states[i].C = G::number_of(c.constant_C, state);
        states[i].dC = recall(p.dC, state, last_tile);
        if constexpr (kComplex) states[i].dC.im = -states[i].dC.im;
      }
    }
  }
  // Writes them back for the tile before, with dC turned over again: in the workspace it is the gradient
  // itself.
  SCANKIT_DEVICE void keep_constants(const Pair& states, int first_state) const {
#pragma unroll
    for (int i = 0; i < kGeneralPer; ++i) {
      if (c.constant_B.data != nullptr) keep(p.dB, first_state + G::own_state(i), states[i].dB);
      N dC = states[i].dC;
      if constexpr (kComplex) dC.im = -dC.im;
      if (c.constant_C.data != nullptr) keep(p.dC, first_state + G::own_state(i), dC);
    }
  }

  // One slice of the tile at `step`. last_tile: the sequence's last, where nothing waits in the workspace
  // yet; `first`: as in add_to_slab.
  SCANKIT_DEVICE void slice(int first_state, int step, bool last_tile, bool first) {
    Pair states = {};
    N h[kGeneralPer];
#pragma unroll
    for (int i = 0; i < kGeneralPer; ++i) {
      const int state = first_state + G::own_state(i);
      State& v = states[i];
      const N A = G::rate_of(state);
      v.rate = make_rate<kComplex>(A);
      if constexpr (kComplex) v.angle = kLog2E * A.im;
      v.carry = last_tile ? G::state_of(g.dlast_state, state) : recall(p.carry, state, false);
      v.dA = recall(p.dA, state, last_tile);
      h[i] = load_start(step, state);
    }
    // Between the barriers B and C are replaced; the first also waits for add_to_slab's reads of the sums.
    __syncthreads();
    G::stage(first_state, step);
    __syncthreads();
    if (G::has_constant()) {
      load_constants(states, first_state, last_tile);
      replay<true>(states, h);
      reverse<true>(states, first_state, step, first);
      find_again();
      keep_constants(states, first_state);
    } else {
      replay<false>(states, h);
      reverse<false>(states, first_state, step, first);
    }
    find_again();
#pragma unroll
    for (int i = 0; i < kGeneralPer; ++i) {
      const int state = first_state + G::own_state(i);
      const State& v = states[i];
      keep(p.carry, state, v.carry);
      if (step == G::begin) G::store_state(g.dinitial_state, state, v.carry);
      keep(p.dA, state, v.dA);
    }
  }

  // Adds up the sums of a channel's four pieces and writes them to the sequence's slab.
  SCANKIT_DEVICE void store_channel_sum(float sum, Index offset) const {
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    if (G::has_piece() && lane % 4 == 0 && lane / 4 < place.channels)
      slab(offset)[G::entry * p.dim_pitch + place.channel + lane / 4] = sum;
  }

  // One tile of channels, over all of the sequence. `first`: the run's first.
  SCANKIT_DEVICE void tile(bool first) {
    total(0) = total(1) = 0.0f;
    // A sequence without steps still has sums and a state's gradient.
    const int steps = G::end > G::begin ? G::end - G::begin : 1;
    for (int step = G::begin + (steps - 1) / kTile * kTile; step >= G::begin; step -= kTile) {
      find_again();
      prologue(G::of_channel(c.delta_bias), step);
      for (int state = 0; state < c.states; state += kGeneralSlice)
        slice(state, step, G::end - step <= kTile, first);
      __syncwarp();
      epilogue(G::of_channel(c.delta_bias), G::of_channel(c.D), step);
      __syncwarp();
    }
    if (g.dD != nullptr) store_channel_sum(total(0), p.dD);
    if (g.ddelta_bias != nullptr) store_channel_sum(total(1), p.dbias);
  }
};

// The body of scankit_general_backward_* (entry.cuh).
template <class T, bool kComplex>
SCANKIT_DEVICE void general_backward(const GeneralBackwardArguments& p) {
  using K = GeneralBackward<T, kComplex>;
  extern __shared__ __align__(16) float memory[];
  const Backward& g = p.backward;
  const Common& c = g.common;
  K k{{c, {}}, p, g};
  k.find_lane();
  // grid.x: run fastest, then group, then sequence. Not find_place, as a block has several tiles
  // of channels.
  k.run = static_cast<int>(blockIdx.x % p.runs);
  k.place.group = static_cast<int>(blockIdx.x / p.runs % c.groups);
  k.place.batch = static_cast<int>(blockIdx.x / p.runs / c.groups);
  k.find_steps();
  constexpr int kRows = kGeneralChannels * kPitch;
  // Shared memory as general_floats in launch_general.cc counts it: B and C, each warp's rows of dt, w,
  // dy, s and r, then what `kept` says.
  k.projections = memory;
  k.dt = memory + 2 * K::kProjection + threadIdx.x / 32 * 5 * kRows;
  k.w = k.dt + kRows;
  k.dy = k.w + kRows;
  k.s = k.dy + kRows;
  k.r = k.s + kRows;
  k.kept = memory + 2 * K::kProjection + kGeneralWarps * 5 * kRows;
  const int begin = k.run * p.tiles_per_run;
  for (int tile = begin; tile < begin + p.tiles_per_run && tile < p.tiling.tiles_per_group; ++tile) {
    const Index at = (Index{tile} * kGeneralWarps + threadIdx.x / 32) * kGeneralChannels;
    const Index left = p.tiling.channels_per_group - at;
    k.place.channels = static_cast<int>(left < 0 ? 0 : left < kGeneralChannels ? left : kGeneralChannels);
    k.place.channel =
        static_cast<int>(Index{k.place.group} * p.tiling.channels_per_group + (left > 0 ? at : 0));
    k.tile(tile == begin);
    __syncthreads();  // the next tile's warps overwrite sums and projections
  }
}

}  // namespace scankit::selective_scan
