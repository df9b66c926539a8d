// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/params.h"

// What each kernel takes, by value. The workspace comes first (driver_plan.h): places in it are byte offsets,
// known when the plan is made; the pointer is known only when it runs. No standard header: NVRTC has none.
namespace scankit::selective_scan {

// Blocks are numbered channel tile fastest, then group, then batch, all in grid.x: grid.y ends at 65535, dim
// does not.
struct Tiling {
  int channels_per_group;  // dim / groups
  int tiles_per_group;     // blocks that the channels of a group take
};

// Where too few channels fill the GPU, the length is cut into segments that run side by side, each in
// blocks of its own, in grid.y. What enters a segment is known from the pieces before it (after it in
// the backward), two or more a segment: each one's end from zero and the sum of its dt, which a kernel
// of its own finds first (ends.cuh).
struct Segments {
  int count;            // 1: the whole length is one, the rest means nothing
  int tiles;            // of a segment; the last one has what is left
  int pieces;           // of the whole length; a segment starts with one
  int tiles_per_piece;  // likewise
  Index ends;           // byte offsets of fp32: [piece][batch][dim][states]
  Index sums;           // [piece][batch][dim]
};

// Of every forward kernel; the general ones leave segments, `aligned` and `end` unread. The states that a
// backward is not given are saved by a forward with a null out.
struct ForwardArguments {
  void* workspace;
  Forward forward;
  Tiling tiling;
  Segments segments;
  bool aligned;         // every row of a sequence, B and C starts at a 16-byte place and has 8 k steps
  bool x_in_workspace;  // at its start, as SavedStates describes; forward.x.data is then not read
  bool x_odd_rows;  // x's first two strides count halves of a number; a row begins with its first whole one
  // Steps to scan, but for slices: length, or those of all tiles but the last one, of which then nothing is
  // written, its state and last_state neither.
  int end;
};

// Of every plain backward kernel.
struct BackwardArguments {
  void* workspace;
  Backward backward;
  Tiling tiling;
  Segments segments;
  bool aligned;
  bool halves;  // every row starts at an 8-byte place (of fp32: a 16-byte one) and has 4 k steps
  bool x_in_workspace, x_odd_rows;
  // fp32 slabs, one per block (projections) or per segment and batch entry (the others), which the reduce
  // kernel sums.
  Index projections;  // [tile][dB, dC][batch][group][state][pitch]
  Index dA;           // [segment][batch][dA_pitch]
  Index dD;           // [segment][batch][dim_pitch]
  Index dbias;        // [segment][batch][dim_pitch]
  Index carry;        // [batch][dim][states]; only where the states are looped over in slices
  Index pitch, dA_pitch, dim_pitch;
  // There is one slab of each: the kernel writes the gradients themselves, and nothing is left to reduce. dA,
  // dD and dbias are then their addresses, and there is no workspace.
  bool direct;
  // Of the kernel for a constant B or C, in place of `projections`: a variable one's slabs, [tile][batch]
  // [group][state][pitch], or a constant one's, in dA's form. Never direct.
  Index dB, dC;
};

// Of the ends kernels; grid.y counts pieces.
struct EndsArguments {
  void* workspace;
  Common common;
  Sequence dout;  // backward only
  Tiling tiling;
  Segments segments;
  bool aligned;
  int first;  // piece; the others follow
};

// Of the general kernels (general.cuh). Offsets as above, with a slab for each sequence where a batch entry
// has one above; a constant B or C has its slab in dA's form, [sequence][matrix_pitch], as has what is
// carried from tile to tile.
struct GeneralBackwardArguments {
  void* workspace;
  Backward backward;
  Tiling tiling;
  int runs, tiles_per_run;  // of each sequence and group; a run is a block
  bool x_in_workspace;
  Index dB, dC;  // variable: [run][batch][group][state][pitch]
  Index dA, dD, dbias, carry;
  Index pitch, matrix_pitch, dim_pitch;
};

// Of the single step. A channel has `lanes` threads, a power of two up to 32; a batch entry has
// `blocks` blocks.
struct UpdateArguments {
  void* workspace;  // none
  Update update;
  int channels_per_group, lanes, blocks;
};
inline constexpr int kUpdateThreads = 128;

// out[row * out_pitch + i] = sum over slabs, in their order, of source[slab * slab_stride + row * pitch + i],
// i < length; summed in fp32, rounded to `type` once. add: to what is there, which is fp32.
struct ReduceJob {
  Index source;  // byte offset, a multiple of 16
  Index slabs, slab_stride;
  Index rows, length, pitch;  // pitch and slab_stride are multiples of 4
  void* out;
  DType type;
  bool add;
  Index out_pitch;
};
inline constexpr int kMaxReduceJobs = 5;
struct ReduceArguments {
  void* workspace;
  ReduceJob jobs[kMaxReduceJobs];
  Index first_block[kMaxReduceJobs + 1];  // job j has the blocks first_block[j] .. first_block[j + 1]
};

inline constexpr int kReduceThreads = 256;

}  // namespace scankit::selective_scan
