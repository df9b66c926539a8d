// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/causal_conv1d/params.h"

// What each kernel takes, by value. The workspace comes first (driver_plan.h). No standard
// header, since NVRTC has none.
namespace scankit::causal_conv1d {

inline constexpr int kThreads = 128;
inline constexpr int kWarps = kThreads / 32;
// Steps of a segment. Lanes over channels: a thread walks the steps of a segment. Lanes over steps: a warp
// has a segment of one channel.
inline constexpr int kChannelSegment = 64, kStepSegment = 256;
inline constexpr int kReduceChannels = 32, kReduceParts = 8;

// Of the *_by_channel and *_by_step kernels. segments: of a row's steps, kChannelSegment or
// kStepSegment each.
struct ForwardArguments {
  void* workspace;
  Forward conv;
  Index segments;
};

// The workspace holds the slabs, [width + 1][dim] each, the last row is dbias: one for each batch and
// segment, or for each part of a channel.
struct BackwardArguments {
  void* workspace;
  Backward conv;
  Index segments, slabs;
};

// The kernels of vector.cuh. A warp's lanes take kPiece neighbouring steps each, together a tile. The tiles
// of a channel, those of one batch behind those of the batch before, go to `parts` blocks (grid_y), and in
// those to the warps: `warp_tiles` neighbouring ones to each.
inline constexpr int kTileBytes = 32 * 16, kMostParts = 65535, kWarpsWanted = 8192;
// Of the kernels for whole pieces: a warp's tiles in the forward, a block's warps in the backward, and what
// each of these has in shared memory since sm_80: tiles of x and of dout, two of each under way.
inline constexpr int kWholeTiles = 2, kMostWarps = 8, kStagesOfWarp = 4, kStageBytes = kTileBytes + 16;
struct Tiles {
  int row, warp, parts;  // tiles of a row (one batch's steps of a channel) and of a warp; blocks of a channel
  bool states;           // there are initial or final ones, or their gradients
};
struct ForwardVectorArguments {
  void* workspace;
  Forward conv;
  Tiles tiles;
  // Bytes from behind a row's last tile to the next batch's row.
  Index x_jump, out_jump;
};
// With one part the kernel writes dweight and dbias, else a slab for each part.
struct BackwardVectorArguments {
  void* workspace;
  Backward conv;
  Tiles tiles;
  Index x_jump, dout_jump, dx_jump;
};

struct UpdateArguments {
  void* workspace;
  Update conv;
};

// The kernels of pairs.cuh: a lane has two neighbouring channels, a warp kPairChannels and a segment
// of `steps` steps of one batch. Blocks along y have kWarps segments each; the backward's have a slab each.
inline constexpr int kPairChannels = 64;
struct Segments {
  int steps, count;  // count: of a batch
  bool states;       // as in Tiles
};
struct ForwardPairsArguments {
  void* workspace;
  Forward conv;
  Segments segments;
};
struct BackwardPairsArguments {
  void* workspace;
  Backward conv;
  Segments segments;
};

}  // namespace scankit::causal_conv1d
