// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/backward_tile.cuh"
#include "kernels/selective_scan/cuda/state_slices.cuh"
#include "kernels/selective_scan/cuda/step_lanes_backward.cuh"

// The backward of the plain kernels. With w = dt u, a = exp(dt A), dy the gradient of y, and g the
// gradient of a state h, all at one step t of a channel, n over the states:
//   g_t = C_t dy_t + a_(t+1) g_(t+1)         dB_t, dC_t = sums over the channels of g_t w_t and dy_t h_t
//   s = sum over n of g B                    du = D dy + dt s;  dD = sum over steps of dy u
//   r = sum over n of log2(e) A a g h_(t-1)  ddelta = (u s + ln 2 r) sigmoid(delta + bias), its sum is dbias
//   dA = sum over steps of dt a g h_(t-1)    dy = dout silu(z);  dz = dout out silu'(z)
// (sigmoid only with softplus, whose derivative it is; silu only with a gate.) A block takes its tiles
// from the last one to the first, each from the states that the forward saved before it. A tile's phases,
// over rows of dt, w, dy, s and r in shared memory:
//   prologue, stage   pieces of the rows (ungate and dt), B and C; then a barrier
//   replay, reverse   the recurrences (backward_tile.cuh), one warp by itself; then a barrier
//   store_projections dB and dC summed over the block's warps; a slab for each block
//   epilogue          pieces again: du and ddelta
namespace scankit::selective_scan {

// One long file: the members share the kernel's state, and a base of a template would need this-> at each
// use. A kernel's object is a thread's: its members are registers.
template <class T, class L, bool kSliced, class O>
struct BackwardKernel {
  using P = Projections<T, L, O::kConstant>;
  using W = WarpMemory<L, kSliced, O>;
  using Sum = ChannelSum<L>;

  const BackwardArguments& p;
  const Backward& g;
  const Common& c;
  Place place;
  W memory;
  float* projections;  // the block's B and C, in shared memory
  int lane, group, q;
  int mine;  // with O::kAsync: of the warp's memory, a lane's first 16 bytes

  // Element-wise work: four lanes have a row's 32 steps, and piece i of a lane is eight channels further.
  // The channel of the lane's piece i, counted from the warp's first one; how many steps of it exist; its
  // place in bytes within its row; and its first float in an array of rows.
  SCANKIT_DEVICE static int piece_channel(int lane, int i) { return (lane + 32 * i) / 4; }
  SCANKIT_DEVICE int piece_count(int i, int step) const {
    if (piece_channel(lane, i) >= place.channels) return 0;
    return c.length - step - lane % 4 * 8;
  }
  SCANKIT_DEVICE Index piece_offset(int step) const { return (step + lane % 4 * 8) * Index{T::kSize}; }
  SCANKIT_DEVICE int piece_at(int i) const { return piece_channel(lane, i) * kPitch + lane % 4 * 8; }
  // A piece's row, by kRowTable from the table of addresses in shared memory, where `which` is a row's
  // place: dout, u, delta, z, out, dz, du, ddelta, and the saved states. Eight addresses of two registers
  // each would be too many to keep.
  template <class S>
  SCANKIT_DEVICE const char* row(const S& of, int which, int i) const {
    if constexpr (O::kRowTable)
      return memory.row(which, lane) + i * 8 * of.dim_stride * T::kSize;
    else
      return row_of<T>(of, place.batch, place.channel + piece_channel(lane, i));
  }
  // Once, at the start of the kernel. Of each row the address of the lane's piece 0 at step 0; pieces
  // further on are a multiple of dim_stride away.
  SCANKIT_DEVICE void fill_table() const {
    const Sequence* in[] = {&g.dout, &c.u, &c.delta, &c.z, &g.out};
    const SequenceOut* out[] = {&g.dz, &g.du, &g.ddelta};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const Index channel = place.channel + piece_channel(lane, 0);
      memory.row(i, lane) =
          i < 5 ? row_of<T>(*in[i], place.batch, channel) : row_of<T>(*out[i - 5], place.batch, channel);
    }
    if constexpr (kStartInTable) memory.row(8, lane) = reinterpret_cast<const char*>(start_of(0, kTile, 0));
    if constexpr (O::kAsync) P::find(projections + L::kProjections, c, place);
    __syncwarp();  // the lanes of a row write one address, all of them the same
  }
  static_assert(!O::kAsync || T::kSize == 2);
  // A lane's 16 bytes in one of the arrays of raw pieces (BackwardMemory in layout.h): dout, z, out, u,
  // delta, and u and delta once more.
  SCANKIT_DEVICE float* raw_array(int array, int i) const {
    return projections + mine + (W::M::kRaw + array * W::M::kRawArray + i * 128);
  }
  // A lane's 16 bytes of the states before a tile, which are asked for with the tile.
  SCANKIT_DEVICE float* start(int ch) const { return projections + mine + (W::M::kStart + ch * 128); }
  // The copy of a row's piece. u and delta have two buffers in turn, for even and odd tiles: the epilogue
  // reads them when those of the tile before are already on the way.
  SCANKIT_DEVICE float* raw(int which, int i, int step) const {
    if (which == 1 || which == 2)
      return raw_array(which + 2, i) + (step & kTile) * (2 * W::M::kRawArray / kTile);
    return raw_array(which == 0 ? 0 : which - 2, i);
  }
  // Asks for all that the tile at `step` reads. A lane asks for what it will read itself, so that
  // wait_for_copies alone, and no barrier, makes it safe to read.
  SCANKIT_DEVICE void ask(int step) const {
#pragma unroll
    for (int i = 0; i < L::kPieces; ++i) {
      if (piece_channel(lane, i) >= L::kWarpChannels) continue;
      // All addresses before the first copy: before each copy that follows a load from shared memory nvcc
      // puts three empty loads.
      const Sequence* sequences[] = {&g.dout, &c.u, &c.delta, &c.z, &g.out};
      const char* from[5];
#pragma unroll
      for (int which = 0; which < 5; ++which)
        from[which] = row(*sequences[which], which, i) + piece_offset(step);
      const int count = piece_count(i, step);
      const auto copy = [&](int which) { copy_16_bytes(raw(which, i, step), from[which], count > 0); };
      if (!p.aligned) {
#pragma unroll
        for (int which = 0; which < 5; ++which)
          if (which < 3 || c.z.data != nullptr) copy_halves(raw(which, i, step), from[which], count);
      } else if (c.z.data != nullptr)  // all of them on either side, for the same reason
        copy(0), copy(1), copy(2), copy(3), copy(4);
      else
        copy(0), copy(1), copy(2);
    }
    P::ask(projections + L::kProjections, c, step, p.aligned);
    if constexpr (kStartIsAhead) {
      if (step > 0) ask_start(step);
    }
    commit_copies();
  }
  // A piece of a row, from its copy (kAligned and Async) or from global memory. `more`: also brings the
  // same piece of the tile that comes next, the one before, to L2.
  template <bool kAligned>
  SCANKIT_DEVICE void fetch(Eight<T>& e, const Sequence& from, int which, int i, int step,
                            bool more = false) const {
    if constexpr (kAligned && O::kAsync) {
      const uint4 v = *reinterpret_cast<const uint4*>(raw(which, i, step));
      e.w[0] = v.x, e.w[1] = v.y, e.w[2] = v.z, e.w[3] = v.w;
    } else {
      const char* at = row(from, which, i) + piece_offset(step);
      load_piece<kAligned>(e, at, piece_count(i, step));
      if (more) prefetch(at - kTile * T::kSize);
    }
  }
  // D or delta_bias of a piece's channel, 0 where there is none. Read again for each tile: a register less
  // for the scan.
  SCANKIT_DEVICE float of_channel(const float* from, int i) const {
    const int channel = piece_channel(lane, i);
    return from != nullptr && channel < place.channels ? from[place.channel + channel] : 0.0f;
  }
  // Writes a piece that exists.
  SCANKIT_DEVICE void store(const SequenceOut& to, int which, const float (&v)[8], int i, int step) const {
    store_piece<T>(p.aligned, const_cast<char*>(row(to, which, i)) + piece_offset(step), v,
                   piece_count(i, step));
  }

  // dy = dout silu(z), from dout in `dy`; writes dz = dout out silu'(z), where silu'(z) = sigmoid(z) (1 +
  // z (1 - sigmoid(z))), and out_z = out silu(z) if wanted. `out` is the forward's, as rounded to T.
  SCANKIT_DEVICE void ungate(float (&dy)[8], const Eight<T>& from_z, const Eight<T>& from_out, int i,
                             int step) const {
    float z[8], out[8], dz[8];
    T::unpack(from_z.w, z);
    T::unpack(from_out.w, out);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float gate = sigmoid(z[j]), silu = z[j] * gate;
      dz[j] = dy[j] * out[j] * gate * fmaf(z[j], 1.0f - gate, 1.0f);
      dy[j] *= silu;
      out[j] *= silu;
    }
    if (piece_count(i, step) <= 0) return;
    store(g.dz, 5, dz, i, step);
    if (g.out_z.data != nullptr)
      store_piece<T>(
          p.aligned,
          row_of<T>(g.out_z, place.batch, place.channel + piece_channel(lane, i)) + piece_offset(step), out,
          piece_count(i, step));
  }

  // Rows of dt, w and dy from the pieces at `step`; adds to the lane's sums for dD. `more`: has the tile
  // before brought to the L2 cache; its part of a row is 64 or 128 bytes and begins with a lane's piece.
  SCANKIT_DEVICE void prologue(float (&dD)[L::kPieces], int step, bool more) const {
    if (O::kAsync && p.halves) wait_for_copies();
#pragma unroll
    for (int i = 0; i < L::kPieces; ++i) {
      if (piece_channel(lane, i) >= L::kWarpChannels) continue;
      // All loads before the first store: the compiler must assume that a store changes what they read.
      Eight<T> from_dout, from_u, from_delta, from_z, from_out;
      const auto fetch_all = [&](auto aligned) {
        const bool ahead = more && piece_channel(lane, i) < place.channels;
        fetch<aligned>(from_dout, g.dout, 0, i, step, ahead);
        fetch<aligned>(from_u, c.u, 1, i, step, ahead);
        fetch<aligned>(from_delta, c.delta, 2, i, step, ahead);
        if (c.z.data == nullptr) return;
        fetch<aligned>(from_z, c.z, 3, i, step, ahead);
        fetch<aligned>(from_out, g.out, 4, i, step, ahead);
      };
      if (O::kAsync ? p.halves
                    : T::kSize == 2 && p.aligned)  // fp32 would spill; so would the epilogue's loads
        fetch_all(Constant<true>{});
      else
        fetch_all(Constant<false>{});
      float dy[8], u[8], dt[8];
      T::unpack(from_dout.w, dy);
      T::unpack(from_u.w, u);
      if (c.z.data != nullptr) ungate(dy, from_z, from_out, i, step);
      discretize<T::kExact>(from_delta, of_channel(c.delta_bias, i), c.softplus, piece_count(i, step), dt);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        dD[i] = fmaf(dy[j], u[j], dD[i]);
        u[j] *= dt[j];
      }
      write_eight(memory.dt + piece_at(i), dt);
      write_eight(memory.w + piece_at(i), u);
      write_eight(memory.dy + piece_at(i), dy);
    }
  }

  // du = D dy + dt s and ddelta = (u s + ln2 r) sigmoid(delta + bias), from the rows of s and r, the
  // sums over the states. u and delta are read again, which costs no registers during the scan. du
  // may overwrite the states that the tile started from (kept_states.h); they were read before the
  // last barrier. Steps behind the end pass the last state's gradient on, so their r and s need not
  // be 0: they stay out of dbias.
  SCANKIT_DEVICE void epilogue(float (&dbias)[L::kPieces], int step) const {
#pragma unroll
    for (int i = 0; i < L::kPieces; ++i) {
      const int count = piece_count(i, step);
      if (count <= 0) continue;
      const float bias = of_channel(c.delta_bias, i), D = of_channel(c.D, i);
      float u[8], delta[8], s[8], r[8], v[8];
      Eight<T> from_u, from_delta;
      const auto fetch_both = [&](auto aligned) {
        fetch<aligned>(from_u, c.u, 1, i, step);
        fetch<aligned>(from_delta, c.delta, 2, i, step);
      };
      if (O::kAsync && p.halves)
        fetch_both(Constant<true>{});
      else
        fetch_both(Constant<false>{});
      T::unpack(from_u.w, u);
      T::unpack(from_delta.w, delta);
      read_eight(memory.s + piece_at(i), s);
      read_eight(memory.r + piece_at(i), r);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        r[j] = fmaf(kLn2, r[j], u[j] * s[j]);
        if (c.softplus) r[j] *= sigmoid(delta[j] + bias);
        if (j < count) dbias[i] += r[j];
      }
      store(g.ddelta, 7, r, i, step);
      read_eight(memory.dt + piece_at(i), delta);
      read_eight(memory.dy + piece_at(i), v);
#pragma unroll
      for (int j = 0; j < 8; ++j) v[j] = fmaf(delta[j], s[j], D * v[j]);
      store(g.du, 6, v, i, step);
    }
  }

  // The states before the tile that starts at `step`: the initial ones, or those saved after the
  // tile before.
  SCANKIT_DEVICE void load_start(float (&h)[L::kChannels][L::kPer], int step, int state) const {
    if (step == 0) return load_given<L>(h, c.initial_state, c, place, group, state);
#pragma unroll
    for (int ch = 0; ch < L::kChannels; ++ch) {
      if constexpr (kStartIsAhead) {
        if (p.halves) {
          read_quad(start(ch), 0, h[ch]);
          continue;
        }
      }
      const float* from = kStartInTable ? start_in_table(ch, step, state) : start_of(ch, step, state);
      load_states<L::kPer>(h[ch], from, start_count(ch, state));
    }
  }
  // The address of a thread's saved states, and the same from the table of rows; how many of them exist.
  SCANKIT_DEVICE const float* start_of(int ch, int step, int state) const {
    const SavedStates x = states_of(c, g.x, p.x_in_workspace, p.workspace);
    return x.data + states_row(x, p.x_odd_rows, place.batch, place.channel + group + ch * L::kGroups) +
           (step / kTile - 1) * x.chunk_stride + state;
  }
  SCANKIT_DEVICE const float* start_in_table(int ch, int step, int state) const {
    const SavedStates x = states_of(c, g.x, p.x_in_workspace, p.workspace);
    return reinterpret_cast<const float*>(memory.row(8, lane)) + ch * states_step<L>(x, p.x_odd_rows) +
           (step / kTile - 1) * x.chunk_stride + state;
  }
  SCANKIT_DEVICE int start_count(int ch, int state) const {
    return group + ch * L::kGroups < place.channels ? c.states - state : 0;
  }
  // In layouts of four lanes a channel, where a lane's states are of the channel that its pieces are of:
  // one table entry serves both.
  static constexpr bool kStartInTable = O::kRowTable && L::kLanes == 4;
  // Where a lane's states of a channel are 16 bytes, one copy.
  static constexpr bool kStartIsAhead = O::kAsync && kStartInTable && L::kPer == 4;
  // States at odd places come through registers: cp.async needs aligned addresses.
  SCANKIT_DEVICE void ask_start(int step) const {
    const int state = q * L::kPer;
#pragma unroll
    for (int ch = 0; ch < L::kChannels; ++ch) {
      const float* from = start_in_table(ch, step, state);
      const int count = start_count(ch, state);
      float v[L::kPer];
      if (count >= 4 && misalignment(from) == 0) {
        copy_16_bytes(start(ch), reinterpret_cast<const char*>(from), true);
      } else {
        load_states<L::kPer>(v, from, count);
        write_states<L::kPer>(start(ch), v);
      }
    }
  }

  // B and C of a tile to shared memory, from their copies or from global memory. All threads.
  SCANKIT_DEVICE void stage(int slice, int step) const {
    if constexpr (O::kAsync) {
      if (p.halves) return P::stage_raw(projections, projections + L::kProjections, c);
    }
    P::stage(projections, c, place, slice, step, p.aligned);
  }

  // One slice of one tile; all warps. `more`: there is a tile before, to ask for. The registers of the
  // scan are in ChannelSum's order, hence the permutations.
  SCANKIT_DEVICE void slice(int step, int first_state, ScanState<L>& state,
                            ConstantSums<L, O::kConstant>& sums, bool more) const {
    const int own = first_state + q * L::kPer;
    float h[L::kChannels][L::kPer];
    load_start(h, step, own);
    // From here on nothing of this tile is read from its copies but u and delta, which have two
    // buffers: the next tile's may come.
    if (O::kAsync && p.halves && more) ask(step - kTile);
    Sum::permute(h, group);
    Constants<L, O::kConstant> constants;
    if constexpr (O::kConstant) {
      constants.load(c, place, group, own);
      load_A<L>(state.A, c, place, group, own);  // again for each tile: four registers less meanwhile
      Sum::permute(state.A, group);
      Sum::permute(constants.B, group);
      Sum::permute(constants.C, group);
    }
    move_sums<true>(sums);
    with_constants<L>(c, constants, [&](const auto& held) {
      // Places are found anew in each kind, and in each tile: held for all of them they spill.
      int own_lane = lane;
      if constexpr ((O::kConstant || O::kRowTable) && !O::kAsync) scankit::selective_scan::keep(own_lane);
      const int own_group = own_lane / L::kLanes, own_q = own_lane % L::kLanes;
      replay<L>(memory, projections, state.A, h, own_group, own_q, own_lane, held);
      reverse<L, kSliced>(memory, projections, state, own_group, own_q, own_lane, held, sums);
    });
    move_sums<false>(sums);
    // Every warp's sums are in shared memory.
    __syncthreads();
    store_projections(step, first_state);
  }

  // The block's sums for dB and dC of a slice: over the warps, in their order, then to the block's slab.
  // Warps' sums are kWarp floats apart; warp 0's are `first`.
  SCANKIT_DEVICE void store_projections(int step, int first_state) const {
    const int warps = blockDim.x / 32, stride = W::M::kWarp;
    const float* first = memory.kept - threadIdx.x / 32 * stride;
    // Eight threads in a row write 32 steps of a state: 128 bytes.
    for (int i = threadIdx.x; i < 2 * L::kSlice * 8; i += blockDim.x) {
      const int quad = i % 8, value = i / 8;  // value: which * kSlice + state
      const int state = first_state + value % L::kSlice;
      if (state >= c.states || P::is_constant(c, i / 2)) continue;  // i / 2: its piece
      float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      for (int warp = 0; warp < warps; ++warp) {
        const float4 part = *reinterpret_cast<const float4*>(
            first + warp * stride +
            W::part_offset(quad, value / L::kSlice, value % L::kPer, value % L::kSlice / L::kPer));
        sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
      }
      const int which = value / L::kSlice;
      if constexpr (O::kConstant)
        put_variable(which, state, step + quad * 4, sum);
      else
        put_projection<T, O::kPacked>(p, place, which, state, step + quad * 4, sum);
    }
  }
  // put_projection for the kernel of a constant B or C: each variable one has a slab of its
  // own, [tile][batch][group][state][pitch].
  SCANKIT_DEVICE void put_variable(int which, int state, int step, float4 sum) const {
    const Index row = (Index{place.batch} * c.groups + place.group) * c.states + state;
    const Index half = Index{c.batch} * c.groups * c.states * p.pitch;
    *reinterpret_cast<float4*>(slab(which == 0 ? p.dB : p.dC) + place.tile * half + row * p.pitch + step) =
        sum;
  }

  // A place in the workspace. With `direct` there is none: the offset is an address, and the pointer
  // is null.
  SCANKIT_DEVICE float* slab(Index offset) const {
    return reinterpret_cast<float*>(reinterpret_cast<Index>(p.workspace) + offset);
  }
  // The block's row in the slabs for dA, dD and the bias: [segment][batch].
  SCANKIT_DEVICE Index slab_row() const { return Index{segment_index()} * c.batch + place.batch; }
  // place.channels for the kernel's last lines (also below 0). Held for their sake through all tiles it would be
  // spilled where registers are few: NVRTC's code needs one more than nvcc's.
  SCANKIT_DEVICE int channels_again() const {
    if constexpr (!O::kRowTable) return place.channels;
    int tile = place.tile;
    scankit::selective_scan::keep(tile);
    const int warp = tile * static_cast<int>(blockDim.x / 32) + static_cast<int>(threadIdx.x / 32);
    const int left = p.tiling.channels_per_group - warp * L::kWarpChannels;
    return left < L::kWarpChannels ? left : L::kWarpChannels;
  }
  // Adds up the sums of a channel's four pieces, in four neighbouring lanes, and writes them to the
  // block's row.
  // The order is that of the lanes, whatever the number of warps: the same bits from run to run.
  SCANKIT_DEVICE void store_channel_sums(const float (&v)[L::kPieces], Index offset) const {
#pragma unroll
    for (int i = 0; i < L::kPieces; ++i) {
      float sum = v[i];
      sum += __shfl_xor_sync(0xffffffffu, sum, 1);
      sum += __shfl_xor_sync(0xffffffffu, sum, 2);
      const int channel = piece_channel(lane, i);
      if (lane % 4 == 0 && channel < channels_again())
        slab(offset)[slab_row() * p.dim_pitch + place.channel + channel] = sum;
    }
  }
  // Reads or writes (kRead) a number for each of the thread's states in the slab at `offset`,
  // whose rows are (dim, states).
  // Between registers and a slab, which for carry and dA of a sliced kernel is also where they wait from
  // tile to tile. A thread reads only what it wrote, so no fence is needed.
  template <bool kRead>
  SCANKIT_DEVICE void exchange(float (&v)[L::kChannels][L::kPer], Index offset, Index pitch,
                               int state) const {
#pragma unroll
    for (int ch = 0; ch < L::kChannels; ++ch) {
      const int channel = group + ch * L::kGroups;
      const int count = channel < place.channels ? c.states - state : 0;
      float* at = slab(offset) + slab_row() * pitch + (place.channel + channel) * Index{c.states} + state;
      if constexpr (kRead)
        load_states<L::kPer>(v[ch], at, count);
      else
        store_states<L::kPer>(at, v[ch], count);
    }
  }

  // fp32 has no registers for the sums of a constant B's and C's gradients during a tile's other phases:
  // they are kept in shared memory, each lane its own. kRead: from there.
  template <bool kRead>
  SCANKIT_DEVICE void move_sums(ConstantSums<L, O::kConstant>& sums) const {
    if constexpr (W::M::kSumsApart) {
#pragma unroll
      for (int i = 0; i < 2 * L::kChannels * L::kPer; ++i) {
        const int at = i % (L::kChannels * L::kPer);
        float& number = (i == at ? sums.dB : sums.dC)[at / L::kPer][at % L::kPer];
        float& place = memory.constant_sum(i, lane);
        (kRead ? number : place) = kRead ? place : number;
      }
    }
  }
  // To the slabs, back in the states' own order.
  SCANKIT_DEVICE void store_sums(ConstantSums<L, true>& sums) const {
    Sum::permute(sums.dB, group);
    Sum::permute(sums.dC, group);
    if (c.constant_B.data != nullptr) exchange<false>(sums.dB, p.dB, p.dA_pitch, q * L::kPer);
    if (c.constant_C.data != nullptr) exchange<false>(sums.dC, p.dC, p.dA_pitch, q * L::kPer);
  }
  // Between the states' order and the registers' (ChannelSum); its own inverse.
  SCANKIT_DEVICE void permute_sums(ScanState<L>& state) const {
    Sum::permute(state.carry, group);
    Sum::permute(state.dA, group);
  }

  // The block's tiles from the last one to the first. Barriers a tile: behind the staging of B and C,
  // behind the scan, and a third one unless O::kTwoBarriers. All threads reach them, those without channels
  // too.
  SCANKIT_DEVICE void run() {
    float dD[L::kPieces] = {}, dbias[L::kPieces] = {};
    ScanState<L> state = {};
    ConstantSums<L, O::kConstant> sums = {};
    move_sums<false>(sums);
    if constexpr (O::kRowTable) fill_table();
    const int slices = kSliced ? (c.states + L::kSlice - 1) / L::kSlice : 1;
    if constexpr (!kSliced) {
      load_A<L>(state.A, c, place, group, q * L::kPer);
      load_given<L>(state.carry, g.dlast_state, c, place, group, q * L::kPer);
    }
    // The block's tiles are [first, end).
    const int chunks = static_cast<int>(tile_count(c.length)), first = segment_index() * p.segments.tiles;
    const int end = segment_index() + 1 < p.segments.count ? first + p.segments.tiles : chunks;
    device::wait_for_last();
    if (!kSliced && end < chunks)
      enter_segment<L, true>(state.carry, state.A, p.segments, p.workspace, c, place, group, q);
    if constexpr (!kSliced) {
      Sum::permute(state.A, group);
      permute_sums(state);
    }
    // Nothing runs before the first tile that could ask for it.
    if (O::kAsync && p.halves && first < end) ask((end - 1) * kTile);
    for (int chunk = end - 1; chunk >= first; --chunk) {
      const int step = chunk * kTile;
      prologue(dD, step, chunk > first);
      if constexpr (kSliced) memory.clear_sums(lane);
      for (int s = 0; s < slices; ++s) {
        const int first_state = s * L::kSlice, own = first_state + q * L::kPer;
        // Sliced: what goes from tile to tile waits in the workspace while the other slices have
        // the registers.
        if (kSliced && chunk < chunks - 1) {
          exchange<true>(state.carry, p.carry, c.dim * Index{c.states}, own);
          exchange<true>(state.dA, p.dA, p.dA_pitch, own);
        } else if (kSliced) {
          state = {};
          load_given<L>(state.carry, g.dlast_state, c, place, group, own);
        }
        if constexpr (kSliced) {
          load_A<L>(state.A, c, place, group, own);
          Sum::permute(state.A, group);
          permute_sums(state);
        }
        // The slice's rows of B and C are free: the barrier behind the scan of the one before has
        // been passed.
        stage(s, step);
        __syncthreads();
        slice(step, first_state, state, sums, chunk > first);
        // The next stage overwrites B, C; the next scan the sums that store_projections reads. But B and C
        // were read before the last barrier, and a scan comes after the next one.
        if constexpr (!O::kTwoBarriers) __syncthreads();
        if constexpr (kSliced) {
          permute_sums(state);
          if (chunk == 0) store_given<L>(g.dinitial_state, state.carry, c, place, group, own);
          exchange<false>(state.carry, p.carry, c.dim * Index{c.states}, own);
          exchange<false>(state.dA, p.dA, p.dA_pitch, own);
        }
      }
      // s and r are the warp's own, and complete since slice()'s barrier.
      epilogue(dbias, step);
      __syncwarp();
    }
    if constexpr (!kSliced) {
      permute_sums(state);
      if (first == 0) store_given<L>(g.dinitial_state, state.carry, c, place, group, q * L::kPer);
      exchange<false>(state.dA, p.dA, p.dA_pitch, q * L::kPer);
    }
    move_sums<true>(sums);
    if constexpr (O::kConstant) store_sums(sums);
    if (g.dD != nullptr) store_channel_sums(dD, p.dD);
    if (g.ddelta_bias != nullptr) store_channel_sums(dbias, p.dbias);
  }
};

// Shared memory, as BackwardMemory in layout.h counts it: the block's B and C (and their raw pieces), then
// each warp's own. The kernel object is built from p by reference, as in tiled_forward.
template <class T, class L, bool kSliced, class O>
SCANKIT_DEVICE void tiled_backward(const BackwardArguments& p) {
  using K = BackwardKernel<T, L, kSliced, O>;
  using M = BackwardMemory<L, kSliced, O>;
  extern __shared__ __align__(16) float memory[];
  const Backward& g = p.backward;
  K k{p,
      g,
      g.common,
      find_place(g.common, p.tiling, L::kWarpChannels),
      WarpMemory<L, kSliced, O>(memory + M::kBlock + threadIdx.x / 32 * M::kWarp),
      memory};
  k.lane = threadIdx.x % 32;
  k.group = k.lane / L::kLanes;
  k.q = k.lane % L::kLanes;
  // All of a lane's copies are at constant distances from here.
  k.mine = M::kBlock + threadIdx.x / 32 * M::kWarp + k.lane * 4;
#ifndef SCANKIT_EMULATED
  if constexpr (O::kAsync) asm volatile("" : "+r"(k.mine));  // not to be computed again at each use
#endif
  k.run();
}

// The body of every plain backward kernel (entry.cuh).
template <class T, class L, bool kSliced, class O>
SCANKIT_DEVICE void backward_kernel(const BackwardArguments& p) {
  if constexpr (L::kLanes == 1) {
    extern __shared__ __align__(16) float memory[];
    if constexpr (L::kPer < 16)
      StepLanesBackward<T, L>(p, memory).run();
    else if constexpr (T::kSize == 2 && kSliced)  // fp32's are empty, and never launched
      StateSlicesBackward<T, L, O>(p, memory).run();
    else if constexpr (T::kSize == 2 || O::kDirect)
      StateLoopBackward<T, L, BackwardMemory<L, false, O>>(p, memory).run();
  } else {
    tiled_backward<T, L, kSliced, O>(p);
  }
}

}  // namespace scankit::selective_scan
