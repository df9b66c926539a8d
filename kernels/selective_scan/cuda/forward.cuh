// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/forward_tile.cuh"
#include "kernels/selective_scan/cuda/odd_rows.cuh"
#include "kernels/selective_scan/cuda/step_lanes.cuh"

// The forward of the plain kernels (a real A). For each channel, with n over the states:
//   dt = delta + bias, through softplus where asked;  h_n = exp(dt A_n) h_n + dt u B_n
//   y = sum over n of C_n h_n + D u;  out = y, and with a gate out_z = y silu(z)
// It is sequential in L, tile by tile, without a parallel scan: the GPU is filled by channels, by the
// lanes that share a channel's states and, where that is not enough, by segments of the length (ends.cuh).
//
// A warp has kWarpChannels channels. A span of steps goes through three phases, which meet in
// shared memory:
//   prologue   a lane has pieces, eight steps of one channel: dt and w = dt u go to the warp's rows
//   scan_tile  kLanes lanes have a channel's states in registers; y takes the place of w, or of what y was
//   epilogue   the pieces again: D u, gate, out and out_z
// B and C of the span are shared by the block, in two buffers in turn, so one __syncthreads a span is
// enough: who is past it writes to the buffer that all have left. Rows are a warp's own and need
// __syncwarp alone.
namespace scankit::selective_scan {

// One long file, for backward.cuh's reason. kSliced: more states than a slice has (run_sliced), else all
// of them are in registers (run). A kernel's object is a thread's: its members are registers.
template <class T, class L, bool kSliced, class O>
struct ForwardKernel {
  using P = Projections<T, L, O::kConstant>;
  static constexpr int kSubtiles = L::kSubtiles;
  static constexpr int kSpan = kSubtiles * kTile;  // steps from one barrier to the next
  // Pieces of B and C that a thread carries from one span to the next: its share in the smallest block.
  static constexpr int kFewest = ForwardMemory<L, kSliced, O>::kFewestWarps * 32;
  static constexpr int kCarried = kSliced ? 1 : (kSubtiles * P::kCount + kFewest - 1) / kFewest;

  // A lane's pieces of the next span, on their way to registers.
  struct Loaded {
    Eight<T> u[L::kPieces], delta[L::kPieces];
    Eight<T> bc[kCarried];
  };

  const ForwardArguments& p;
  const Common& c;
  Place place;
  int lane, group, q;
  // In shared memory: the block's B and C; rows of the warp's channels, kPitch floats each (y is w unless
  // sliced); the states of the slices that are not in registers.
  float *shared, *dt, *w, *y, *kept;
  float *odd, *odd_bc;  // with kOdd: of the warp and of the block, rows as they are in global memory
  int fewest;           // the least of the pieces' limits
  // Bytes from each tensor's data to piece 0 at the first step of the span that is loaded (u,
  // delta) or scanned (the others). Offsets move on by addition; products of strides would be
  // computed again in each span.
  Index u_at, delta_at, z_at, out_at, out_z_at;
  // Where x is: the caller's tensor, or the start of the workspace if a backward has this forward find its
  // states.
  SCANKIT_DEVICE SavedStates states() const {
    return states_of(c, p.forward.x, p.x_in_workspace, p.workspace);
  }
  // Element-wise work: four lanes have a row's 32 steps, eight each, and piece i is eight rows further.
  // Rows are subtile-major: with several tiles a span, rows [0, kWarpChannels) are the first tile's.
  SCANKIT_DEVICE int piece_row(int i) const { return lane / 4 + 8 * i; }
  SCANKIT_DEVICE int piece_channel(int i) const {
    return kSubtiles == 1 ? piece_row(i) : piece_row(i) % L::kWarpChannels;
  }
  SCANKIT_DEVICE int piece_step(int i) const {
    return (kSubtiles == 1 ? 0 : piece_row(i) / L::kWarpChannels * kTile) + lane % 4 * 8;
  }
  // The piece's first float in an array of rows.
  SCANKIT_DEVICE int piece_at(int i) const { return piece_row(i) * kPitch + lane % 4 * 8; }
  // Steps that exist from piece i's first one on; 0: no such channel.
  SCANKIT_DEVICE int limit(int i) const {
    return piece_channel(i) < place.channels ? c.length - piece_step(i) : kNoRow;
  }
  static constexpr int kNoRow = O::kOdd ? -8 : 0;  // ask_vectors
  // Steps of piece i that exist in the span which starts at `step`.
  SCANKIT_DEVICE int piece_count(int i, int step) const { return limit(i) - step; }
  // All of the lane's pieces exist, and can be read and written as vectors. With `aligned` a piece exists
  // as a whole or not at all, so one comparison is enough.
  SCANKIT_DEVICE bool whole(int step) const { return p.aligned && fewest > step; }
  // Bytes from piece 0 to piece i. A warp with several pieces a lane has one tile a span, so i
  // counts channels.
  SCANKIT_DEVICE Index piece_offset(int i, Index dim_stride) const { return i * 8 * dim_stride * T::kSize; }
  // Sets the offsets and limits for the span that starts at `step`.
  SCANKIT_DEVICE void find_rows(int step) {
    static_assert(kSubtiles == 1 || L::kPieces == 1);
    const Index at = place.channel + piece_channel(0), bytes = (step + piece_step(0)) * Index{T::kSize};
    u_at = offset_of<T>(c.u, place.batch, at) + bytes;
    delta_at = offset_of<T>(c.delta, place.batch, at) + bytes;
    z_at = offset_of<T>(c.z, place.batch, at) + bytes;
    out_at = offset_of<T>(p.forward.out, place.batch, at) + bytes;
    out_z_at = offset_of<T>(p.forward.out_z, place.batch, at) + bytes;
    fewest = limit(0);
#pragma unroll
    for (int i = 1; i < L::kPieces; ++i)
      if (limit(i) < fewest) fewest = limit(i);
    keep(fewest);
  }

  // The two ways to load the lane's pieces of one row each: all of them exist and are aligned (whole), or
  // each by its own count.
  SCANKIT_DEVICE void load_pieces(Eight<T> (&to)[L::kPieces], const Sequence& from, Index at) const {
#pragma unroll
    for (int i = 0; i < L::kPieces; ++i)
      load_whole(to[i], data_of(from) + at + piece_offset(i, from.dim_stride), true);
  }
  SCANKIT_DEVICE void load_partly(Eight<T> (&to)[L::kPieces], const Sequence& from, Index at,
                                  int step) const {
#pragma unroll
    for (int i = 0; i < L::kPieces; ++i)
      load_eight(to[i], data_of(from) + at + piece_offset(i, from.dim_stride), piece_count(i, step));
  }
  // Asks for u and delta of the next span and moves their offsets on.
  SCANKIT_DEVICE void load(Loaded& to, int step) {
    if (whole(step)) {
      load_pieces(to.u, c.u, u_at);
      load_pieces(to.delta, c.delta, delta_at);
    } else {
      load_partly(to.u, c.u, u_at, step);
      load_partly(to.delta, c.delta, delta_at, step);
    }
    u_at += kSpan * T::kSize, delta_at += kSpan * T::kSize;
    keep(u_at), keep(delta_at);
  }
  // Of the thread's piece k of B and C: the steps that exist from its first one on. 0 or less: it does
  // not exist.
  SCANKIT_DEVICE int projection_limit(int k) const {
    const int piece = threadIdx.x + k * blockDim.x;
    if constexpr (O::kOdd) {
      if (piece / 4 % L::kSlice >= c.states) return kNoRow;
    }
    return P::count_of(c, piece % P::kCount, 0) - piece / P::kCount * kTile;
  }
  // Whether the thread has a k-th piece to carry: blocks of few warps have up to kCarried a thread, larger
  // ones fewer.
  SCANKIT_DEVICE bool has_projection(int k) const {
    if constexpr (O::kConstant) {
      if (P::is_constant(c, (threadIdx.x + k * blockDim.x) % P::kCount)) return false;
    }
    return threadIdx.x + k * blockDim.x < kSubtiles * P::kCount;
  }
  // Asks for B and C of a span; `from` are the thread's pieces there and move on. In the fast case
  // pieces that the thread does not have are read as well (`run` points them at ones that exist), to
  // spare a branch.
  SCANKIT_DEVICE void load_projections(Loaded& to, const char* (&from)[kCarried], int fewest_here,
                                       int step) const {
    if (p.aligned && fewest_here > step) {
#pragma unroll
      for (int k = 0; k < kCarried; ++k) load_whole(to.bc[k], from[k], true);
    } else {
#pragma unroll
      for (int k = 0; k < kCarried; ++k)
        if (has_projection(k)) load_eight(to.bc[k], from[k], projection_limit(k) - step);
    }
#pragma unroll
    for (int k = 0; k < kCarried; ++k) from[k] += kSpan * T::kSize;
  }
  // Where piece k goes in shared memory: kProjections floats for each tile of the span.
  SCANKIT_DEVICE int projection_at(int k) const {
    const int piece = threadIdx.x + k * blockDim.x;
    return piece / P::kCount * L::kProjections + P::at(piece % P::kCount);
  }
  // B and C of the next span to the other buffer, which the barrier of this span made free.
  SCANKIT_DEVICE void store_projections(const Loaded& from, const int (&at)[kCarried], float* to) const {
#pragma unroll
    for (int k = 0; k < kCarried; ++k) {
      float v[8];
      T::unpack(from.bc[k].w, v);
      if (has_projection(k)) write_eight(to + at[k], v);
    }
  }

  // dt and w = dt u of the lane's pieces to the rows. Steps behind the end get dt = 0, which leaves
  // states alone.
  SCANKIT_DEVICE void prologue(const Loaded& from, const float (&bias)[L::kPieces], int step) const {
    float d[L::kPieces][8];
    discretize<T::kExact>(from.delta, bias, c.softplus, d);
    if (fewest - step < 8) {
#pragma unroll
      for (int i = 0; i < L::kPieces; ++i) end_piece(d[i], piece_count(i, step));
    }
#pragma unroll
    for (int i = 0; i < L::kPieces; ++i) {
      float u[8];
      T::unpack(from.u[i].w, u);
#pragma unroll
      for (int j = 0; j < 8; ++j) u[j] *= d[i][j];
      write_eight(dt + piece_at(i), d[i]);
      write_eight(w + piece_at(i), u);
    }
  }

  // Of the current span, not the next one: z is used last, behind the scan.
  SCANKIT_DEVICE void load_z(Eight<T> (&z)[L::kPieces], int step) const {
    if (c.z.data == nullptr) return;
    if (whole(step))
      load_pieces(z, c.z, z_at);
    else
      load_partly(z, c.z, z_at, step);
  }
  // Only what exists is written: a row's end may be another tensor's begin.
  SCANKIT_DEVICE void store_pieces(const SequenceOut& to, Index at, const float (&v)[L::kPieces][8],
                                   int step) const {
    if (whole(step)) {
#pragma unroll
      for (int i = 0; i < L::kPieces; ++i)
        store_whole<T>(data_of(to) + at + piece_offset(i, to.dim_stride), v[i]);
    } else {
#pragma unroll
      for (int i = 0; i < L::kPieces; ++i)
        if (piece_count(i, step) > 0)
          store_eight<T>(data_of(to) + at + piece_offset(i, to.dim_stride), v[i], piece_count(i, step));
    }
  }
  // From the rows of y to out and out_z. out is rounded where it is stored; the gate takes y as it
  // was before.
  SCANKIT_DEVICE void epilogue(const Eight<T> (&from_u)[L::kPieces], const Eight<T> (&from_z)[L::kPieces],
                               const float (&D)[L::kPieces], int step) const {
    const Forward& f = p.forward;
    if (f.out.data == nullptr) return;
    float v[L::kPieces][8];
#pragma unroll
    for (int i = 0; i < L::kPieces; ++i) {
      float u[8];
      read_eight(y + piece_at(i), v[i]);
      T::unpack(from_u[i].w, u);
#pragma unroll
      for (int j = 0; j < 8; ++j) v[i][j] = fmaf(D[i], u[j], v[i][j]);
    }
    store_pieces(f.out, out_at, v, step);
    if (c.z.data == nullptr) return;
#pragma unroll
    for (int i = 0; i < L::kPieces; ++i) {
      float z[8];
      T::unpack(from_z[i].w, z);
#pragma unroll
      for (int j = 0; j < 8; ++j) v[i][j] *= z[j] * sigmoid(z[j]);
    }
    store_pieces(f.out_z, out_z_at, v, step);
  }
  // What a kernel with kOdd has in place of load, load_projections, load_z and store_pieces (odd_rows.cuh).
  using Odd = OddLayout;
  // In shared memory: the row of piece i in an array of OddLayout, and of a projection's piece k.
  SCANKIT_DEVICE float* odd_row(int i, int array) const { return odd + piece_row(i) * Odd::kPitch + array; }
  SCANKIT_DEVICE float* odd_projection(int k) const {
    const int row = (threadIdx.x + k * blockDim.x) / 4;
    return odd_bc + row % L::kSlice * Odd::kProjectionPitch + row / L::kSlice * Odd::kRow;
  }
  SCANKIT_DEVICE void ask_rows(const Sequence& from, Index at, int array, int step) const {
#pragma unroll
    for (int i = 0; i < L::kPieces; ++i)
      ask_vectors(odd_row(i, array) + lane % 4 * 4, data_of(from) + at + piece_offset(i, from.dim_stride),
                  piece_count(i, step), lane % 4 == 3);
  }
  SCANKIT_DEVICE void read_rows(Eight<T> (&to)[L::kPieces], const Sequence& from, Index at, int array) const {
#pragma unroll
    for (int i = 0; i < L::kPieces; ++i)
      read_piece(to[i], odd_row(i, array) + lane % 4 * 4,
                 misalignment(data_of(from) + at + piece_offset(i, from.dim_stride)));
  }
  // Asks for u, delta, B and C of the span that starts at `step`; load and load_projections in one.
  SCANKIT_DEVICE void ask_span(const char* (&projections)[kCarried], int step) {
    ask_rows(c.u, u_at, Odd::kU, step);
    ask_rows(c.delta, delta_at, Odd::kDelta, step);
    u_at += kSpan * T::kSize, delta_at += kSpan * T::kSize;
    keep(u_at), keep(delta_at);
#pragma unroll
    for (int k = 0; k < kCarried; ++k) {
      if (has_projection(k))
        ask_vectors(odd_projection(k) + lane % 4 * 4, projections[k], projection_limit(k) - step,
                    lane % 4 == 3);
      projections[k] += kSpan * T::kSize;
    }
  }
  // Waits for what the warp's lanes have asked for. A row's four lanes are of one warp, B's and C's too.
  SCANKIT_DEVICE void land() const {
    wait_for_copies();
    __syncwarp();
  }
  SCANKIT_DEVICE void read_projections(Loaded& to, const char* const (&projections)[kCarried]) const {
#pragma unroll
    for (int k = 0; k < kCarried; ++k)
      if (has_projection(k))
        read_piece(to.bc[k], odd_projection(k) + lane % 4 * 4, misalignment(projections[k]));
  }
  SCANKIT_DEVICE void put_rows(int array, const float (&v)[L::kPieces][8]) const {
#pragma unroll
    for (int i = 0; i < L::kPieces; ++i) {
      Eight<T> e;
      T::pack(v[i], e.w);
      put_piece(odd_row(i, array), lane % 4, e);
    }
  }
  // Writes the vector that each of the lane's pieces starts in. left: behind the last span, with which no new
  // piece has come: what is left of the vectors before.
  SCANKIT_DEVICE void store_rows(const SequenceOut& to, Index at, int array, int step, bool left) const {
    const int first = first_step();
#pragma unroll
    for (int i = 0; i < L::kPieces; ++i) {
      const int count = piece_count(i, step), none = -(lane % 4 * 8);
      store_vector<T>(data_of(to) + at + piece_offset(i, to.dim_stride), odd_row(i, array), lane % 4,
                      first - step + none, left && none < count ? none : count);
    }
  }
  // The last piece of each row to where the next span finds it.
  SCANKIT_DEVICE void carry_rows(int array) const {
#pragma unroll
    for (int i = 0; i < L::kPieces; ++i)
      if (lane % 4 == 3) quad_at(odd_row(i, array), 0) = quad_at(odd_row(i, array), 16);
  }
  // As epilogue.
  SCANKIT_DEVICE void odd_epilogue(const Eight<T> (&from_u)[L::kPieces], const float (&D)[L::kPieces],
                                   int step) const {
    const Forward& f = p.forward;
    if (f.out.data == nullptr) return;
    float v[L::kPieces][8];
#pragma unroll
    for (int i = 0; i < L::kPieces; ++i) {
      float u[8];
      read_eight(y + piece_at(i), v[i]);
      T::unpack(from_u[i].w, u);
#pragma unroll
      for (int j = 0; j < 8; ++j) v[i][j] = fmaf(D[i], u[j], v[i][j]);
    }
    put_rows(Odd::kOut, v);
    const bool gated = c.z.data != nullptr;
    if (gated) {
      Eight<T> from_z[L::kPieces];
      read_rows(from_z, c.z, z_at, Odd::kZ);
#pragma unroll
      for (int i = 0; i < L::kPieces; ++i) {
        float z[8];
        T::unpack(from_z[i].w, z);
#pragma unroll
        for (int j = 0; j < 8; ++j) v[i][j] *= z[j] * sigmoid(z[j]);
      }
      put_rows(Odd::kOutZ, v);
    }
    __syncwarp();
    store_rows(f.out, out_at, Odd::kOut, step, false);
    if (gated) store_rows(f.out_z, out_z_at, Odd::kOutZ, step, false);
    __syncwarp();
    carry_rows(Odd::kOut);
    if (gated) carry_rows(Odd::kOutZ);
  }
  // Behind the last span, which ended before `step`.
  SCANKIT_DEVICE void store_left(int step) const {
    if (p.forward.out.data == nullptr || step <= first_step()) return;
    __syncwarp();
    store_rows(p.forward.out, out_at, Odd::kOut, step, true);
    if (c.z.data != nullptr) store_rows(p.forward.out_z, out_z_at, Odd::kOutZ, step, true);
  }

  // To the next span. u_at and delta_at have moved on in load(), a span earlier.
  SCANKIT_DEVICE void advance() {
    z_at += kSpan * T::kSize, out_at += kSpan * T::kSize, out_z_at += kSpan * T::kSize;
    keep(z_at), keep(out_at), keep(out_z_at);
  }

  // delta_bias or D of each of the lane's pieces; 0 where there is none.
  // Kept in registers for the whole length: the epilogue and the prologue of each span need them.
  SCANKIT_DEVICE void per_channel(float (&to)[L::kPieces], const float* from) const {
#pragma unroll
    for (int i = 0; i < L::kPieces; ++i) {
      const int channel = piece_channel(i);
      to[i] = from != nullptr && channel < place.channels ? from[place.channel + channel] : 0.0f;
    }
  }

  // Of the block's segment. With kOdd it is computed again at each use, which spares a register.
  SCANKIT_DEVICE int first_step() const { return segment_index() * p.segments.tiles * kTile; }

  // All states in registers; u, delta, B and C of the next span are under way while this one is scanned.
  // The block has one segment of the length, blockIdx.y.
  SCANKIT_DEVICE void run() {
    float bias[L::kPieces], D[L::kPieces], A[L::kChannels][L::kPer], h[L::kChannels][L::kPer];
    per_channel(bias, c.delta_bias);
    per_channel(D, c.D);
    load_A<L>(A, c, place, group, q * L::kPer);
    load_given<L>(h, c.initial_state, c, place, group, q * L::kPer);
    const int first = first_step();
    const int end = segment_index() + 1 < p.segments.count ? first + p.segments.tiles * kTile : p.end;
    const char* projections[kCarried];
    int projections_at[kCarried], fewest_projections = projection_limit(0);
#pragma unroll
    for (int k = 0; k < kCarried; ++k) {
      // A piece that the thread does not have is read as its first one, and not written.
      const int piece = threadIdx.x + (has_projection(k) ? k * blockDim.x : 0);
      projections[k] =
          P::place_of(c, place, piece % P::kCount, 0) + (first + piece / P::kCount * kTile) * Index{T::kSize};
      projections_at[k] = projection_at(k);
      keep(projections_at[k]);
      if (has_projection(k) && projection_limit(k) < fewest_projections)
        fewest_projections = projection_limit(k);
    }
    keep(fewest_projections);
    Constants<L, O::kConstant> constants;
    if constexpr (O::kConstant) {
      constants.load(c, place, group, q * L::kPer);
      // A thread's first piece stands in for those it does not have. If that one is of a constant B or C,
      // there is nothing to read in its place.
      if (P::is_constant(c, threadIdx.x % P::kCount)) fewest_projections = 0;
    }
    int group_row = group * kPitch, state_row = q * kPitch;
    if constexpr (kSubtiles == 1) keep(group_row), keep(state_row);
    device::wait_for_last();
    if (segment_index() > 0) enter_segment<L, false>(h, A, p.segments, p.workspace, c, place, group, q);
    SavePlace saved = save_place<L>(states(), p.x_odd_rows, c, place, first / kTile, group, q * L::kPer);
    find_rows(first);
    Loaded now;
    if constexpr (O::kOdd) {
      static_assert(kSubtiles == 1 && T::kSize == 2);
      ask_span(projections, first);
      commit_copies();
      land();
      read_projections(now, projections);
    } else {
      load(now, first);
      load_projections(now, projections, fewest_projections, first);
    }
    store_projections(now, projections_at, shared + (first / kSpan & 1) * kSubtiles * L::kProjections);
    int step = first;
    for (; step < end; step += kSpan) {
      float* bc = shared + (step / kSpan & 1) * kSubtiles * L::kProjections;
      float* next_bc = shared + ((step / kSpan & 1) ^ 1) * kSubtiles * L::kProjections;
      if constexpr (O::kOdd)
        read_rows(now.u, c.u, u_at, Odd::kU), read_rows(now.delta, c.delta, delta_at, Odd::kDelta);
      prologue(now, bias, step);
      // u stays for D u in the epilogue: `now` is filled again meanwhile.
      Eight<T> u[L::kPieces], z[L::kPieces];
#pragma unroll
      for (int i = 0; i < L::kPieces; ++i) u[i] = now.u[i];
      const bool more = step + kSpan < end;
      if constexpr (!O::kOdd) {
        load_z(z, step);
        if (more) load(now, step + kSpan);
        if (more) load_projections(now, projections, fewest_projections, step + kSpan);
      }
      // Behind it the rows and this span's B and C are complete, and nobody reads the other buffer
      // any more.
      __syncthreads();
      if constexpr (O::kOdd) {  // the lanes of a row have read what these overwrite
        if (c.z.data != nullptr) ask_rows(c.z, z_at, Odd::kZ, step);
        if (more) ask_span(projections, step + kSpan);
        commit_copies();
      }
#pragma unroll 1
      for (int sub = 0; sub < kSubtiles; ++sub) {
        const int row = sub * L::kRows + group_row;
        with_constants<L>(c, constants, [&](const auto& held) {
          scan_tile<L, false, O>(dt + row, w + row, w + row, bc + sub * L::kProjections + state_row, A, h, q,
                                 end - step - sub * kTile, held);
        });
        // The last tile's states are saved in another form, behind the loop.
        if (step + (sub + 1) * kTile < c.length)
          save_states<L>(saved, c, place, false, group, q * L::kPer, h);
      }
      // Here and not before the scan: the loads had that long to arrive.
      if constexpr (O::kOdd) {
        land();
        if (more) read_projections(now, projections);
      }
      if (more) store_projections(now, projections_at, next_bc);
      // A channel's lanes have written y, which the lanes of its pieces read.
      if constexpr (O::kOdd) {
        odd_epilogue(u, D, step);
      } else {
        __syncwarp();
        epilogue(u, z, D, step);
      }
      advance();
    }
    if constexpr (O::kOdd) store_left(step);
    if (end < c.length) return;
    save_states<L>(saved, c, place, !O::kPacked, group, q * L::kPer, h);
    // A register that only this needs would be spilled for sm_80.
    if constexpr (O::kOdd) place = find_place(c, p.tiling, L::kWarpChannels);
    store_given<L>(p.forward.last_state, h, c, place, group, q * L::kPer);
  }

  // The states of a slice that is not being scanned wait in shared memory, each thread's own (no barrier
  // guards them), and, in wide slices, their A (`which` 1). Where a slice has few states, A is read again:
  // in shared memory it would cost more warps than it is worth.
  static constexpr bool kKeepsA = L::kSlice > 16;
  SCANKIT_DEVICE float* kept_at(int which, int slices, int slice, int ch) const {
    return kept + (((which * slices + slice) * L::kChannels + ch) * 32 + lane) * L::kPer;
  }
  SCANKIT_DEVICE void put_kept(int which, int slices, int slice,
                               const float (&v)[L::kChannels][L::kPer]) const {
#pragma unroll
    for (int ch = 0; ch < L::kChannels; ++ch) write_states<L::kPer>(kept_at(which, slices, slice, ch), v[ch]);
  }
  SCANKIT_DEVICE void get_kept(int which, int slices, int slice, float (&v)[L::kChannels][L::kPer]) const {
    static_assert(!kSliced || L::kPer == 4);
#pragma unroll
    for (int ch = 0; ch < L::kChannels; ++ch) read_quad(kept_at(which, slices, slice, ch), 0, v[ch]);
  }
  // Before the first tile: initial states (or zeros), and A.
  SCANKIT_DEVICE void begin_slices(int slices) const {
    for (int slice = 0; slice < slices; ++slice) {
      float v[L::kChannels][L::kPer];
      load_given<L>(v, c.initial_state, c, place, group, slice * L::kSlice + q * L::kPer);
      put_kept(0, slices, slice, v);
      if constexpr (kKeepsA) {
        load_A<L>(v, c, place, group, slice * L::kSlice + q * L::kPer);
        put_kept(1, slices, slice, v);
      }
    }
  }
  // Brings u, delta and z of a span to the L2 cache: a sliced kernel has no registers to load them ahead.
  SCANKIT_DEVICE void ask_for_next(int step) const {
#pragma unroll
    for (int i = 0; i < L::kPieces; ++i) {
      if (piece_count(i, step) <= 0) continue;
      prefetch(data_of(c.u) + u_at + piece_offset(i, c.u.dim_stride));
      prefetch(data_of(c.delta) + delta_at + piece_offset(i, c.delta.dim_stride));
      if (c.z.data != nullptr)
        prefetch(data_of(c.z) + z_at + kSpan * T::kSize + piece_offset(i, c.z.dim_stride));
    }
  }
  // Any number of states: within a span, one slice after the other adds its part to y; the states of the
  // others wait in shared memory. While a slice is scanned, B and C of the next one are under way to
  // registers; then they go to the other buffer. One barrier a slice and tile.
  // The length is never cut here: segment_index() is 0. Shared memory grows with the number of slices; the
  // planner takes fewer warps then (can_run).
  SCANKIT_DEVICE void run_sliced() {
    const int slices = (c.states + L::kSlice - 1) / L::kSlice;
    float bias[L::kPieces], D[L::kPieces];
    per_channel(bias, c.delta_bias);
    per_channel(D, c.D);
    begin_slices(slices);
    find_rows(0);
    SliceStages<T, L> stages(c, place, p.aligned);
    stages.load(0, 0);
    int buffer = 0;
    // A sequence without steps still has a last state.
    for (int step = 0; step == 0 || step < c.length; step += kSpan) {
      Loaded now;
      Eight<T> z[L::kPieces];
      load_z(z, step);
      load(now, step);
      ask_for_next(step + kSpan);
      prologue(now, bias, step);
      for (int i = lane; i < kSubtiles * L::kRows; i += 32) y[i] = 0.0f;
#pragma unroll 1
      for (int slice = 0; slice < slices; ++slice) {
        const int state = slice * L::kSlice + q * L::kPer;
        float A[L::kChannels][L::kPer], h[L::kChannels][L::kPer];
        if constexpr (kKeepsA)
          get_kept(1, slices, slice, A);
        else
          load_A<L>(A, c, place, group, state);
        get_kept(0, slices, slice, h);
        SavePlace saved = save_place<L>(states(), false, c, place, step / kTile, group, state);
        bool last = false;
#pragma unroll 1
        for (int sub = 0; sub < kSubtiles && !last; ++sub) {
          const int end = step + (sub + 1) * kTile;
          last = end >= c.length;
          const bool stays = sub + 1 < kSubtiles && !last, turns = slice + 1 == slices;
          float* bc = shared + buffer * L::kProjections;  // of which nothing is read since the last barrier
          buffer ^= 1;
          stages.store(bc, slice, end - kTile);
          stages.load(stays ? slice : turns ? 0 : slice + 1, stays ? end : turns ? step + kSpan : step);
          __syncthreads();
          const int row = sub * L::kRows + group * kPitch;
          scan_tile<L, true, O>(dt + row, w + row, y + row, bc + q * kPitch, A, h, q, c.length - end + kTile);
          save_states<L>(saved, c, place, last, group, state, h);
        }
        put_kept(0, slices, slice, h);
        if (last) store_given<L>(p.forward.last_state, h, c, place, group, state);
      }
      // Before: a channel's lanes have added to y. Behind: the next prologue overwrites dt, w and y.
      __syncwarp();
      epilogue(now.u, z, D, step);
      advance();
      __syncwarp();
    }
  }
};

// p stays in constant memory, since the kernels' parameter is __grid_constant__ (entry.cuh), and a
// reference to it costs no copy.
template <class T, class L, bool kSliced, class O>
SCANKIT_DEVICE void tiled_forward(const ForwardArguments& p) {
  using K = ForwardKernel<T, L, kSliced, O>;
  using M = ForwardMemory<L, kSliced, O>;
  // Shared memory, as ForwardMemory in layout.h counts it: the block's B and C, then for each warp dt, w
  // and (where sliced) y, and its share for the slices.
  extern __shared__ __align__(16) float memory[];
  K k{p, p.forward.common, find_place(p.forward.common, p.tiling, L::kWarpChannels)};
  k.lane = threadIdx.x % 32;
  k.group = k.lane / L::kLanes;
  k.q = k.lane % L::kLanes;
  k.shared = memory;
  const int slices = (p.forward.common.states + L::kSlice - 1) / L::kSlice;  // 1 unless kSliced
  float* own = memory + M::kBlock + threadIdx.x / 32 * (M::kWarp + slices * M::kWarpSlice);
  k.dt = own;
  k.w = own + K::kSubtiles * L::kRows;
  k.y = kSliced ? k.w + K::kSubtiles * L::kRows : k.w;
  k.kept = own + M::kWarp;
  if constexpr (O::kOdd) k.odd = own + M::kOddWarp, k.odd_bc = memory + M::kOddRows;
  if constexpr (kSliced)
    k.run_sliced();
  else
    k.run();
}

// The body of every plain forward kernel (entry.cuh). Layouts of one lane are another algorithm.
template <class T, class L, bool kSliced, class O>
SCANKIT_DEVICE void forward_kernel(const ForwardArguments& p) {
  if constexpr (L::kLanes == 1)
    StepLanesForward<T, L>(p).run();
  else if constexpr (!O::kOdd || T::kSize == 2)  // fp32's are empty, and never launched
    tiled_forward<T, L, kSliced, O>(p);
}

}  // namespace scankit::selective_scan
