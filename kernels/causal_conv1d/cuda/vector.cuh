// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/causal_conv1d/cuda/forward.cuh"

// For signals whose steps are neighbours in memory, without sequence numbers. A tile is 32 lanes' pieces
// of 16 bytes, 128 or 256 steps; a lane gets the kHistory steps before its piece from the lane before it.
// A warp walks tiles of one channel, those of one batch behind those of the batch before, and asks for a
// tile several tiles before it uses it.
//
// How pieces come and go is an Access: Whole (16-byte loads), Single (any rows, through shared memory), or
// Copied (copied.cuh). They are types, so each becomes a kernel of its own.
namespace scankit::causal_conv1d {

inline constexpr unsigned kAllLanes = 0xffffffffu;

// A channel's weights by how many steps back they reach, and its bias. One load for all: lanes 0 to 3 read
// a weight each and lane 4 the bias, and shuffles hand them out. All 32 lanes must be there.
struct Taps {
  float weight[kMaxWidth], bias;

  SCANKIT_DEVICE Taps(const Common& c, Index channel, int lane) {
    const void* data = c.weight;
    Index at = channel * c.weight_dim_stride + (c.width - 1 - lane) * c.weight_tap_stride;
    if (lane == kMaxWidth) data = c.bias, at = channel;
    float mine = 0.0f;
    if (lane < c.width || (lane == kMaxWidth && data != nullptr)) mine = get_weight(c.weight_dtype, data, at);
#pragma unroll
    for (int back = 0; back < kMaxWidth; ++back) weight[back] = __shfl_sync(kAllLanes, mine, back);
    bias = __shfl_sync(kAllLanes, mine, kMaxWidth);
  }

  // y of kPiece steps; x begins kHistory steps before. Terms in the order of Channel::convolve, two taps
  // always, as widths begin at 2.
  template <class Kind, int kPiece>
  SCANKIT_DEVICE void convolve(const Common& c, const float (&x)[kHistory + kPiece],
                               float (&y)[kPiece]) const {
#pragma unroll
    for (int i = 0; i < kPiece; ++i)
      y[i] = fmaf(weight[1], x[kHistory + i - 1], fmaf(weight[0], x[kHistory + i], bias));
    if (Kind::reaches(c, 2)) {
#pragma unroll
      for (int i = 0; i < kPiece; ++i) y[i] = fmaf(weight[2], x[kHistory + i - 2], y[i]);
    }
    if (Kind::reaches(c, 3)) {
#pragma unroll
      for (int i = 0; i < kPiece; ++i) y[i] = fmaf(weight[3], x[kHistory + i - 3], y[i]);
    }
  }
};

// Shared memory for a warp's tile and the piece before it. Where they are is the Access's: Single has the
// tile at words 0 to 31 and the piece before it at 32, Copied the other way round.
struct alignas(16) Stage {
  unsigned words[32 + 1][4];
};

// The kHistory elements before a lane's piece w: the last ones of the previous lane's piece and, for
// the first lane, those that the last lane has in `before`. One shuffle a word: lane 31 sends
// `before` in place of its own.
template <class T>
SCANKIT_DEVICE void history_of(const unsigned (&w)[4], const unsigned (&before)[4], int lane, float* x) {
  unsigned edge[T::kEdge];
#pragma unroll
  for (int i = 0; i < T::kEdge; ++i)
    edge[i] =
        __shfl_sync(kAllLanes, lane == 31 ? before[4 - T::kEdge + i] : w[4 - T::kEdge + i], (lane + 31) % 32);
  T::unpack_edge(edge, x);
}

// What an Access does, of which this is the part that is empty where pieces come through registers:
//   ask, get                a lane's piece of the tile, where the row still has `left` elements: ask starts
//                           the loads, get waits for them. Words that do not exist are 0. Between the two
//                           nobody may touch what was asked for: it may be under way.
//   ask_before, get_before  the piece before the tile, of which the last kHistory elements count; in lane 31
//   history                 the kHistory elements before a lane's piece
//   put                     writes a lane's piece, as far as its row goes
//   slot, commit, wait, release, set_before   shared memory of tiles under way (copied.cuh)
// k...Ahead: how many tiles a warp has asked for. kAllOrNothing: a piece exists as a whole or not at all.
// kBeside: a piece is next to the one before it where it is got from, also the tile's first one, which
// therefore has to be asked for with each tile.
struct ThroughRegisters {
  static constexpr bool kBeside = false;
  SCANKIT_DEVICE static Stage* slot(Stage* stage, int) { return stage; }
  SCANKIT_DEVICE static void commit() {}
  template <int kLeft>
  SCANKIT_DEVICE static void wait() {}
  SCANKIT_DEVICE static void release() {}
  SCANKIT_DEVICE static void set_before(Stage*, int, const unsigned (&)[4]) {}
};

// Rows of whole pieces at places of whole pieces: the forward's, and before sm_80 the backward's, too.
template <class T>
struct Whole : ThroughRegisters {
  static constexpr int kLaneBytes = 16, kForwardAhead = kWholeTiles, kBackwardAhead = 2;
  static constexpr bool kAllOrNothing = true;
  static constexpr bool kForwardAtOnce = true;  // a warp has no more tiles than are asked for ahead
  struct Asked {
    unsigned w[4];
  };
  struct Before {
    unsigned w[4];
  };

  SCANKIT_DEVICE static void ask(const char* from, int left, int lane, Stage*, Asked& to) {
    uint4 v = make_uint4(0, 0, 0, 0);
    if (left > lane * T::kPiece) v = *reinterpret_cast<const uint4*>(from);
    to.w[0] = v.x, to.w[1] = v.y, to.w[2] = v.z, to.w[3] = v.w;
  }
  SCANKIT_DEVICE static void get(const Asked& asked, Stage*, int, unsigned (&w)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) w[i] = asked.w[i];
  }
  SCANKIT_DEVICE static void ask_before(const char* from, bool any, int lane, Stage*, Before& to) {
    uint4 v = make_uint4(0, 0, 0, 0);
    const char* last = from - kTileBytes;
    if (any && lane == 31) {
      if constexpr (T::kSize == 4) {
        v = *reinterpret_cast<const uint4*>(last);
      } else {
        const uint2 two = *reinterpret_cast<const uint2*>(last + 8);
        v.z = two.x, v.w = two.y;
      }
    }
    to.w[0] = v.x, to.w[1] = v.y, to.w[2] = v.z, to.w[3] = v.w;
  }
  SCANKIT_DEVICE static void get_before(const Before& asked, Stage*, int, unsigned (&w)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) w[i] = asked.w[i];
  }
  SCANKIT_DEVICE static void history(Stage*, const unsigned (&w)[4], const unsigned (&before)[4], int lane,
                                     float* x) {
    history_of<T>(w, before, lane, x);
  }
  SCANKIT_DEVICE static void put(char* to, int left, int lane, Stage*, const unsigned (&w)[4]) {
    if (left > lane * T::kPiece) *reinterpret_cast<uint4*>(to) = make_uint4(w[0], w[1], w[2], w[3]);
  }
};

// Any rows: a lane reads and writes every 32nd element, so that a warp's accesses are neighbours wherever
// the row starts, and lanes trade elements for pieces in shared memory. kLaneBytes is one element: a
// lane's pointer is at its own first one.
template <class T>
struct Single : ThroughRegisters {
  static constexpr int kLaneBytes = T::kSize, kForwardAhead = 2, kBackwardAhead = 1;
  static constexpr bool kAllOrNothing = false, kForwardAtOnce = false;
  using Bits = typename T::Bits;
  struct Asked {
    Bits elements[T::kPiece];
  };
  struct Before {
    Bits element;
  };

  SCANKIT_DEVICE static void ask(const char* from, int left, int lane, Stage*, Asked& to) {
#pragma unroll
    for (int i = 0; i < T::kPiece; ++i)
      to.elements[i] = left > 32 * i + lane ? reinterpret_cast<const Bits*>(from)[32 * i] : Bits{};
  }
  SCANKIT_DEVICE static void get(const Asked& asked, Stage* stage, int lane, unsigned (&w)[4]) {
    auto* const elements = reinterpret_cast<Bits*>(stage->words);
#pragma unroll
    for (int i = 0; i < T::kPiece; ++i) elements[32 * i + lane] = asked.elements[i];
    read(*stage, lane, w);
  }
  SCANKIT_DEVICE static void ask_before(const char* from, bool any, int lane, Stage*, Before& to) {
    to.element = any && lane < kHistory ? reinterpret_cast<const Bits*>(from)[-kHistory] : Bits{};
  }
  SCANKIT_DEVICE static void get_before(const Before& asked, Stage* stage, int lane, unsigned (&w)[4]) {
    if (lane < kHistory)
      reinterpret_cast<Bits*>(stage->words[32])[T::kPiece - kHistory + lane] = asked.element;
    read(*stage, 32, w);
  }
  SCANKIT_DEVICE static void history(Stage*, const unsigned (&w)[4], const unsigned (&before)[4], int lane,
                                     float* x) {
    history_of<T>(w, before, lane, x);
  }
  SCANKIT_DEVICE static void put(char* to, int left, int lane, Stage* stage, const unsigned (&w)[4]) {
    *reinterpret_cast<uint4*>(stage->words[lane]) = make_uint4(w[0], w[1], w[2], w[3]);
    __syncwarp();
    const auto* const elements = reinterpret_cast<const Bits*>(stage->words);
#pragma unroll
    for (int i = 0; i < T::kPiece; ++i)
      if (left > 32 * i + lane) reinterpret_cast<Bits*>(to)[32 * i] = elements[32 * i + lane];
    __syncwarp();
  }

 private:
  // A barrier on either side: what other lanes wrote is there, and is not overwritten before all
  // have read.
  SCANKIT_DEVICE static void read(const Stage& stage, int at, unsigned (&w)[4]) {
    __syncwarp();
    const uint4 v = *reinterpret_cast<const uint4*>(stage.words[at]);
    w[0] = v.x, w[1] = v.y, w[2] = v.z, w[3] = v.w;
    __syncwarp();
  }
};

// The piece before a row's first step: its last kHistory elements are the initial state's.
template <class T>
SCANKIT_DEVICE void initial_piece(const Common& c, Index batch, Index channel, unsigned (&w)[4]) {
  float x[T::kPiece] = {};
#pragma unroll
  for (int i = 0; i < kHistory; ++i)
    x[T::kPiece - kHistory + i] = input_of<T>(c, batch, channel, i - kHistory);
  T::pack(x, w);
}

// The tiles of a warp: `count` from number `first` on, of those of all batches of its channel
// (blockIdx.x). 0 or less: none, in the last block.
struct WarpTiles {
  int lane, first, count;

  SCANKIT_DEVICE WarpTiles(const Common& c, const Tiles& tiles) : lane(threadIdx.x % 32) {
    const int warp = static_cast<int>(blockIdx.y * (blockDim.x / 32) + threadIdx.x / 32);
    first = warp * tiles.warp;
    count = c.batch * tiles.row - first;
    if (count > tiles.warp) count = tiles.warp;
  }
};

// Where a signal's tile begins for a lane. In bytes; a tile's number is at most kMostSteps (launch.h).
template <class T, class Bytes>
SCANKIT_DEVICE Bytes* place(Bytes* data, Index batch_stride, Index dim_stride, Index batch, Index channel,
                            int tile, int lane_bytes) {
  return data + (batch * batch_stride + channel * dim_stride) * T::kSize + tile * Index{kTileBytes} +
         lane_bytes;
}

// The forward: *_usual and *_whole have two tiles a warp, both asked for at once; *_single
// walks on, asking for a tile as soon as one has been taken.
//
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
  // All lanes of a warp walk together: the shuffles in it need all 32.
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
  // It is read from x and `initial` again, which a row needs once: kept in registers it would cost some in
  // every tile.
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

// Static shared memory: one Stage a warp, in which lanes trade elements for pieces.
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
