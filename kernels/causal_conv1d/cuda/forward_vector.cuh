// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/causal_conv1d/cuda/vector.cuh"

// The forward of vector.cuh: *_usual and *_whole have two tiles a warp, both asked for at once; *_single
// walks on, asking for a tile as soon as one has been taken.
namespace scankit::causal_conv1d {

// A thread's part. `stage`: the warp's shared memory, if the Access has any.
template <class T, class Access, class Kind>
struct ForwardVector {
  static constexpr int kPiece = T::kPiece, kTile = 32 * kPiece, kAhead = Access::kForwardAhead;
  const ForwardVectorArguments& p;
  const Common& c;
  const int lane;
  Stage* const stage;

  // A lane's piece of out, from its words w of x. `before`: in lane 31, the piece before the tile.
  SCANKIT_DEVICE void compute(const Taps& taps, const unsigned (&w)[4], const unsigned (&before)[4],
                              unsigned (&out)[4]) const {
    float x[kHistory + kPiece], y[kPiece];
    history_of<T>(w, before, lane, x);
    T::unpack(w, x + kHistory);
    taps.convolve<Kind>(c, x, y);
    if (Kind::silu(c)) {
#pragma unroll
      for (int i = 0; i < kPiece; ++i) y[i] *= sigmoid(y[i]);
    }
    T::pack(y, out);
  }

  // `count` tiles from number `first` on. They may go on into the next batches' rows, over the jumps.
  SCANKIT_DEVICE void run(int first, int count) const {
    const Index channel = blockIdx.x;
    int batch = first / p.tiles.row;
    const int tile = first % p.tiles.row, lane_bytes = lane * Access::kLaneBytes;
    // Elements that a row has from the tile on: of the one that is asked for, and of the one that
    // is computed.
    int ahead = c.length - tile * kTile, now = ahead, asked = 0;
    const char* x = place<T>(static_cast<const char*>(c.x.data), c.x.batch_stride, c.x.dim_stride, batch,
                             channel, tile, lane_bytes);
    char* out = place<T>(static_cast<char*>(p.conv.out.data), p.conv.out.batch_stride, p.conv.out.dim_stride,
                         batch, channel, tile, lane_bytes);
    typename Access::Before first_before;
    Access::ask_before(x, tile > 0, lane, stage, first_before);
    typename Access::Asked tiles[kAhead];
    // Asks for the next tile; behind the warp's last one there is nothing left, and words are 0.
    const auto ask = [&](typename Access::Asked& to) {
      Access::ask(x, asked++ < count ? ahead : 0, lane, stage, to);
      x += kTileBytes, ahead -= kTile;
      if (ahead <= 0) x += p.x_jump, ahead = c.length;
    };
#pragma unroll
    for (int k = 0; k < kAhead; ++k) ask(tiles[k]);
    const Taps taps(c, channel, lane);
    unsigned before[4];
    Access::get_before(first_before, stage, lane, before);
    for (int left = count; left > 0; left = Access::kForwardAtOnce ? 0 : left - kAhead) {
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        if (k >= left) return;
        // A row's first tile: what is before it is the initial state, or 0.
        if (Kind::states(p.tiles.states) && now == c.length) initial_piece<T>(c, batch, channel, before);
        unsigned w[4], result[4];
        Access::get(tiles[k], stage, lane, w);
        compute(taps, w, before, result);
        if constexpr (!Access::kForwardAtOnce) ask(tiles[k]);
        Access::put(out, now, lane, stage, result);
        // This tile's last piece is before the next one.
#pragma unroll
        for (int i = 0; i < 4; ++i) before[i] = w[i];
        out += kTileBytes, now -= kTile;
        if (now > 0) continue;
        if (Kind::states(p.tiles.states)) end_row(batch, channel);
        ++batch;
        out += p.out_jump, now = c.length;
#pragma unroll
        for (int i = 0; i < 4; ++i) before[i] = 0;
      }
    }
  }

  // The final state, once a row's last tile is done: by as many lanes.
  SCANKIT_DEVICE void end_row(Index batch, Index channel) const {
    if (p.conv.final.data == nullptr || lane >= c.width - 1) return;
    put<T>(p.conv.final, batch, channel, lane,
           input_of<T>(c, batch, channel, Index{c.length} - (c.width - 1) + lane));
  }
};

// grid.x: channels; grid.y: blocks of a channel.
template <class T, class Kind>
SCANKIT_DEVICE void forward_pieces(const ForwardVectorArguments& p) {
  const Common& c = p.conv.common;
  const WarpTiles mine(c, p.tiles);
  if (mine.count > 0) ForwardVector<T, Whole<T>, Kind>{p, c, mine.lane, nullptr}.run(mine.first, mine.count);
}
template <class T>
SCANKIT_DEVICE void forward_usual(const ForwardVectorArguments& p) {
  forward_pieces<T, CallKind<true>>(p);
}
template <class T>
SCANKIT_DEVICE void forward_whole(const ForwardVectorArguments& p) {
  forward_pieces<T, CallKind<false>>(p);
}

template <class T>
SCANKIT_DEVICE void forward_single(const ForwardVectorArguments& p) {
  __shared__ Stage stages[kWarps];
  const Common& c = p.conv.common;
  const WarpTiles mine(c, p.tiles);
  Stage* const stage = &stages[threadIdx.x / 32];
  if (mine.count > 0)
    ForwardVector<T, Single<T>, CallKind<false>>{p, c, mine.lane, stage}.run(mine.first, mine.count);
}

}  // namespace scankit::causal_conv1d
