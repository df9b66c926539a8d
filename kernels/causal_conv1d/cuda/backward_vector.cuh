// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/causal_conv1d/cuda/backward.cuh"
#include "kernels/causal_conv1d/cuda/copied.cuh"

// The backward of vector.cuh. A warp walks its tiles from the last one down: dx of a step needs dy of the
// kHistory steps behind it. Those behind its last tile it computes too, another warp has them as well.
// Sums of dweight and dbias stay in registers from tile to tile and are added in a fixed order: over a
// lane's steps, lanes, warps, blocks.
namespace scankit::causal_conv1d {

// A lane's sums for dweight, by how many steps back, and dbias.
struct VectorSums {
  float weight[kMaxWidth] = {}, bias = 0.0f;

  // Adds the first `left` steps of a piece. Whole pieces come with a constant count, so that the loops
  // have no tests.
  template <class Kind, bool kAllOrNothing, int kPiece>
  SCANKIT_DEVICE void add(const Common& c, int left, const float* dy, const float (&x)[kHistory + kPiece]) {
    if (kAllOrNothing ? left > 0 : left >= kPiece) {
      add_taps<Kind, kPiece>(c, kPiece, dy, x);
    } else if (left > 0) {
      add_taps<Kind, kPiece>(c, left, dy, x);
    }
  }

 private:
  template <class Kind, int kPiece>
  SCANKIT_DEVICE void add_taps(const Common& c, int left, const float* dy,
                               const float (&x)[kHistory + kPiece]) {
#pragma unroll
    for (int i = 0; i < kPiece; ++i) {
      if (i >= left) continue;
      bias += dy[i];
      weight[0] = fmaf(dy[i], x[kHistory + i], weight[0]);
      weight[1] = fmaf(dy[i], x[kHistory + i - 1], weight[1]);
    }
    if (Kind::reaches(c, 2)) {
#pragma unroll
      for (int i = 0; i < kPiece; ++i)
        if (i < left) weight[2] = fmaf(dy[i], x[kHistory + i - 2], weight[2]);
    }
    if (Kind::reaches(c, 3)) {
#pragma unroll
      for (int i = 0; i < kPiece; ++i)
        if (i < left) weight[3] = fmaf(dy[i], x[kHistory + i - 3], weight[3]);
    }
  }
};

// A thread's part. `stage`: the warp's shared memory or, for Copied, the lane's place in it.
template <class T, class Access, class Kind>
struct BackwardVector {
  static constexpr int kPiece = T::kPiece, kTile = 32 * kPiece, kAhead = Access::kBackwardAhead;
  const BackwardVectorArguments& p;
  const Common& c;
  const int lane;
  const Index channel;
  Stage* const stage;

  // A tile under way: pieces of x and dout, and the one before the tile. Empty where they go to shared
  // memory.
  struct Asked {
    typename Access::Asked x, dout;
    typename Access::Before before;
  };

  // dy of the kHistory steps from `step` on, the same for every lane; 0 behind the row's end. They are in
  // another warp's tile: three lanes compute them from global memory, once a warp.
  SCANKIT_DEVICE void behind(const Taps& taps, Index batch, int step, float (&dy)[kHistory]) const {
    const int mine = step + lane;
    float gradient = 0.0f;
    if (lane < kHistory && mine < c.length) {
      float x[kMaxWidth], y = taps.bias;  // all loads at once; there is a whole tile before them
#pragma unroll
      for (int back = 0; back < kMaxWidth; ++back) x[back] = get<T>(c.x, batch, channel, mine - back);
      gradient = get<T>(p.conv.dout, batch, channel, mine);
#pragma unroll
      for (int back = 0; back < kMaxWidth; ++back)
        if (Kind::reaches(c, back)) y = fmaf(taps.weight[back], x[back], y);
      if (Kind::silu(c)) gradient = through_silu(gradient, y);
    }
#pragma unroll
    for (int i = 0; i < kHistory; ++i) dy[i] = __shfl_sync(kAllLanes, gradient, i);
  }

  // dy of the piece, from dout in `dy`. x begins kHistory steps before.
  SCANKIT_DEVICE void differentiate(const Taps& taps, int left, const float (&x)[kHistory + kPiece],
                                    float* dy) const {
    if (Kind::silu(c)) {
      float y[kPiece];
      taps.convolve<Kind>(c, x, y);
#pragma unroll
      for (int i = 0; i < kPiece; ++i) dy[i] = through_silu(dy[i], y[i]);
    }
    // Behind the row's end dy is 0, from dout, or NaN, where infinite inputs made that of the last steps NaN.
    // Those who share a piece with others are added up, and must be 0.
    if constexpr (Access::kAllOrNothing) return;
    if (left >= kPiece) return;
#pragma unroll
    for (int i = 0; i < kPiece; ++i)
      if (i >= left) dy[i] = 0.0f;
  }

  // dx of the piece, from dy of it and of the kHistory steps behind.
  SCANKIT_DEVICE void inputs_gradient(const Taps& taps, const float (&dy)[kPiece + kHistory],
                                      float (&dx)[kPiece]) const {
#pragma unroll
    for (int i = 0; i < kPiece; ++i) dx[i] = fmaf(taps.weight[1], dy[i + 1], taps.weight[0] * dy[i]);
    if (Kind::reaches(c, 2)) {
#pragma unroll
      for (int i = 0; i < kPiece; ++i) dx[i] = fmaf(taps.weight[2], dy[i + 2], dx[i]);
    }
    if (Kind::reaches(c, 3)) {
#pragma unroll
      for (int i = 0; i < kPiece; ++i) dx[i] = fmaf(taps.weight[3], dy[i + 3], dx[i]);
    }
  }

  // Adds the final state's gradient: the last width - 1 inputs are the final state, too. `left`: elements
  // that the row has from the piece on.
  SCANKIT_DEVICE void add_final(Index batch, int left, float (&dx)[kPiece]) const {
    if (p.conv.dfinal.data == nullptr || left <= 0 || left >= kPiece + c.width - 1) return;
#pragma unroll
    for (int i = 0; i < kPiece; ++i) {
      const int final = i - left + c.width - 1;
      if (i < left && final >= 0) dx[i] += get<T>(p.conv.dfinal, batch, channel, final);
    }
  }

  // The gradients of the inputs before the first step, by lane 0 of a row's first tile; dy begins at step
  // 0. In a row shorter than the filter they are part of the final state.
  SCANKIT_DEVICE void put_initial(const Taps& taps, Index batch, const float* dy) const {
    if (p.conv.dinitial.data == nullptr || lane != 0) return;
#pragma unroll
    for (int before = 1; before < kMaxWidth; ++before) {
      if (before >= c.width) continue;
      float sum = 0.0f;
#pragma unroll
      for (int j = before; j < kMaxWidth; ++j)
        if (j < c.width && j - before < c.length) sum = fmaf(taps.weight[j], dy[j - before], sum);
      const int final = c.width - 1 - before - c.length;
      if (p.conv.dfinal.data != nullptr && final >= 0) sum += get<T>(p.conv.dfinal, batch, channel, final);
      put<T>(p.conv.dinitial, batch, channel, c.width - 1 - before, sum);
    }
  }

  // One tile, at the first of `rest` elements of the row. In lane 0, `next` is dy of the first steps
  // behind it and, afterwards, of its own first ones; lane 31 gets it from there in the same shuffle that
  // hands every other lane its neighbour's.
  SCANKIT_DEVICE void tile(const Taps& taps, const float (&x)[kHistory + kPiece],
                           float (&dy)[kPiece + kHistory], Index batch, int rest, char* dx_at,
                           float (&next)[kHistory], VectorSums& sums) const {
    const int left = rest - lane * kPiece;
    float dx[kPiece];
    differentiate(taps, left, x, dy);
    sums.add<Kind, Access::kAllOrNothing, kPiece>(c, left, dy, x);
#pragma unroll
    for (int i = 0; i < kHistory; ++i) {
      dy[kPiece + i] = __shfl_sync(kAllLanes, lane == 0 ? next[i] : dy[i], (lane + 1) % 32);
      next[i] = dy[i];
    }
    inputs_gradient(taps, dy, dx);
    if (Kind::states(p.tiles.states)) add_final(batch, left, dx);
    unsigned words[4];
    T::pack(dx, words);
    Access::put(dx_at, rest, lane, stage, words);
    if (Kind::states(p.tiles.states) && rest == c.length) put_initial(taps, batch, dy);
  }

  // `count` tiles from number `first` on, the last one first. `ahead` and `now` are elements that the row
  // has from the tile on: of the one that is asked for, and of the one that is computed. Both start over
  // at `end`, the last tile's, when the walk goes down into the batch before.
  // x_jump, dout_jump and dx_jump (arguments.h) lead from a row's first tile to the last one of the batch
  // before.
  SCANKIT_DEVICE void run(int first, int count, VectorSums& sums) const {
    const int last = first + count - 1, row = p.tiles.row, lane_bytes = lane * Access::kLaneBytes;
    int batch = last / row;
    const int at = last % row, end = c.length - (row - 1) * kTile;  // elements of a row's last tile
    int ahead = c.length - at * kTile, now = ahead, asked = 0;
    const char* x = place<T>(static_cast<const char*>(c.x.data), c.x.batch_stride, c.x.dim_stride, batch,
                             channel, at, lane_bytes);
    const char* dout = place<T>(static_cast<const char*>(p.conv.dout.data), p.conv.dout.batch_stride,
                                p.conv.dout.dim_stride, batch, channel, at, lane_bytes);
    char* dx = place<T>(static_cast<char*>(p.conv.dx.data), p.conv.dx.batch_stride, p.conv.dx.dim_stride,
                        batch, channel, at, lane_bytes);
    Asked tiles[kAhead];
    // Asks for the next tile, into place k. It commits where there is none, too: wait counts tiles
    // by commits.
    const auto ask = [&](int k) {
      const int left = asked++ < count ? ahead : 0;
      Stage *const slot_x = Access::slot(stage, 2 * k), *const slot_dout = Access::slot(stage, 2 * k + 1);
      if (!Access::kBeside || left > 0) {
        Access::ask(x, left, lane, slot_x, tiles[k].x);
        Access::ask(dout, left, lane, slot_dout, tiles[k].dout);
        Access::ask_before(x, left > 0 && ahead < c.length, lane, slot_x, tiles[k].before);
      }
      Access::commit();
      x -= kTileBytes, dout -= kTileBytes, ahead += kTile;
      if (ahead > c.length) {
        __syncwarp();  // a real branch: as predicates the instructions would be issued for each tile
        x -= p.x_jump, dout -= p.dout_jump, ahead = end;
      }
    };
#pragma unroll
    for (int k = 0; k < kAhead; ++k) ask(k);
    const Taps taps(c, channel, lane);
    float next[kHistory];
    behind(taps, batch, (at + 1) * kTile, next);
    for (int left = count; left > 0; left -= kAhead) {
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        if (k >= left) return;
        Stage *const slot_x = Access::slot(stage, 2 * k), *const slot_dout = Access::slot(stage, 2 * k + 1);
        // This tile has come; the kAhead - 1 after it may be under way.
        Access::template wait<kAhead - 1>();
        unsigned w[4], before[4], dout_words[4];
        Access::get(tiles[k].x, slot_x, lane, w);
        Access::get_before(tiles[k].before, slot_x, lane, before);
        Access::get(tiles[k].dout, slot_dout, lane, dout_words);
        if (Kind::states(p.tiles.states) && now == c.length) {
          initial_piece<T>(c, batch, channel, before);
          Access::set_before(slot_x, lane, before);
        }
        float dy[kPiece + kHistory], x_now[kHistory + kPiece];
        T::unpack(dout_words, dy);
        // Through registers, the next loads go as soon as these have been unpacked; into shared memory,
        // only when all lanes have read what is to be overwritten.
        if constexpr (!Access::kBeside) ask(k);
        Access::history(slot_x, w, before, lane, x_now);
        T::unpack(w, x_now + kHistory);
        Access::release();
        if constexpr (Access::kBeside) ask(k);
        tile(taps, x_now, dy, batch, now, dx, next, sums);
        dx -= kTileBytes, now += kTile;
        if (now <= c.length) continue;
        __syncwarp();  // as above
        dx -= p.dx_jump, now = end, --batch;
#pragma unroll
        for (int i = 0; i < kHistory; ++i) next[i] = 0.0f;
      }
    }
  }
};

// Two sums at once, over lanes that are `distance` apart: half of them are left with the sum of low, the
// others (distance set in their number) with that of high.
SCANKIT_DEVICE float add_halves(float low, float high, int lane, int distance) {
  const bool upper = (lane & distance) != 0;
  const float send = upper ? low : high, keep = upper ? high : low;
  return keep + __shfl_xor_sync(kAllLanes, send, distance);
}

// The warps' sums, in order, to the block's part of the channel: to dweight and dbias if there is one
// part, else to a slab, [part][width + 1][dim].
SCANKIT_DEVICE void put_sums(const BackwardVectorArguments& p, Index channel, int lane,
                             const VectorSums& sums) {
  __shared__ float shared[kMostWarps][kMaxWidth + 1];
  const Common& c = p.conv.common;
  static_assert(kMaxWidth == 4);
  // Lanes by their three upper bits: those of the four weights, and of the bias where the lowest one is set.
  const float first = add_halves(sums.weight[0], sums.weight[1], lane, 16),
              second = add_halves(sums.weight[2], sums.weight[3], lane, 16);
  float bias = sums.bias + __shfl_xor_sync(kAllLanes, sums.bias, 16);
  bias += __shfl_xor_sync(kAllLanes, bias, 8);
  float sum_of_lanes = add_halves(add_halves(first, second, lane, 8), bias, lane, 4);
  sum_of_lanes += __shfl_xor_sync(kAllLanes, sum_of_lanes, 2);
  sum_of_lanes += __shfl_xor_sync(kAllLanes, sum_of_lanes, 1);
  const int value = (lane & 4) != 0 ? kMaxWidth : lane / 16 + lane / 8 % 2 * 2;
  if (lane % 4 == 0) shared[threadIdx.x / 32][value] = sum_of_lanes;
  __syncthreads();
  const int row = threadIdx.x, from = row < c.width ? c.width - 1 - row : kMaxWidth;
  if (row > c.width) return;
  float sum = 0.0f;
  for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) sum += shared[warp][from];
  if (p.tiles.parts == 1) {
    put_sum(p.conv, row, channel, sum);
  } else {
    static_cast<float*>(p.workspace)[(Index{blockIdx.y} * (c.width + 1) + row) * c.dim + channel] = sum;
  }
}

// grid.x: channels; grid.y: parts of a channel. A warp without tiles adds zeros.
// All threads call put_sums, with its barrier: no warp returns early.
template <class T, class Access, class Kind>
SCANKIT_DEVICE void backward_tiles(const BackwardVectorArguments& p, Stage* stage) {
  const Common& c = p.conv.common;
  const WarpTiles mine(c, p.tiles);
  const Index channel = blockIdx.x;
  VectorSums sums;
  if (mine.count > 0)
    BackwardVector<T, Access, Kind>{p, c, mine.lane, channel, stage}.run(mine.first, mine.count, sums);
  put_sums(p, channel, mine.lane, sums);
}

// By copies where the GPU has them, else through registers. The emulator has both.
template <class T, class Kind>
SCANKIT_DEVICE void backward_pieces(const BackwardVectorArguments& p) {
#ifdef SCANKIT_COPIED
  if (takes_copies()) return backward_tiles<T, Copied<T>, Kind>(p, Copied<T>::lane_stage());
#endif
#if defined(SCANKIT_EMULATED) || !defined(SCANKIT_COPIED)
  backward_tiles<T, Whole<T>, Kind>(p, nullptr);
#endif
}
template <class T>
SCANKIT_DEVICE void backward_usual(const BackwardVectorArguments& p) {
  backward_pieces<T, CallKind<true>>(p);
}
template <class T>
SCANKIT_DEVICE void backward_whole(const BackwardVectorArguments& p) {
  backward_pieces<T, CallKind<false>>(p);
}

template <class T>
SCANKIT_DEVICE void backward_single(const BackwardVectorArguments& p) {
  __shared__ Stage stages[kWarps];
  backward_tiles<T, Single<T>, CallKind<false>>(p, &stages[threadIdx.x / 32]);
}

}  // namespace scankit::causal_conv1d
