// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/arguments.h"
#include "kernels/selective_scan/cuda/launch.h"

// Which variant (variants.def) runs a problem, in blocks of how many warps, and in how many segments.
namespace scankit::selective_scan {

// A row of variants.def, with what the planner derives from it. Arrays of two: for 16-bit tensors,
// for fp32.
struct Variant {
  int lanes, per_lane, channels;  // of Layout
  int team;                       // warps that share channels (layout.h)
  bool sliced;
  int fewest_warps, most_warps;
  int resident_warps[2];  // of a multiprocessor, as registers allow; 0: never taken
  int warp_channels;
  int span_tiles;  // tiles between two barriers: a segment is a multiple of them
  int block_floats[2], warp_floats[2], warp_slice_floats;  // shared memory (layout.h)
  // Cycles per step: of a scheduler for each warp it has where many hide each other's waits, and of one warp
  // alone. Measured on an H200; only their ratios matter.
  int busy, alone;
  bool constant;  // for a constant B or C: of any count of states up to its slice
  bool halves;    // for rows that are `halves` (BackwardArguments) alone: of whole quads
  bool odd;       // for 16-bit rows that are not
};
// Whether up to 16 states have such kernels for rows at odd places, which then are the fast ones.
inline bool has_odd_kernels(const Common& c) {
  return c.dtype != DType::F32 && c.states > 8 && c.states <= 16;
}

struct Choice {
  int variant;       // index into the direction's list
  int warps;         // of a block
  int segments = 1;  // wanted of the length (Segments in arguments.h)
  int pieces = 1;    // of a segment
  int rounds = 0;    // of a backward that finds its states itself (kept_states.h); 0: by size
};

extern const Variant kForwardVariants[];
extern const int kForwardVariantCount;
extern const int kForwardShipped;  // the first of them; choose_forward knows no others
extern const Variant kBackwardVariants[];
extern const int kBackwardVariantCount;
extern const int kBackwardShipped;
// For a constant B or C there is one of each direction, and for packed sequences; a choice's `variant` is then 0.
extern const Variant kConstantForward, kConstantBackward, kPackedForward, kPackedBackward;
inline const Variant& forward_variant(const Choice& choice, const Common& c) {
  return has_constant(c) ? kConstantForward : kForwardVariants[choice.variant];
}
inline const Variant& backward_variant(const Choice& choice, const Common& c) {
  return has_constant(c) ? kConstantBackward : kBackwardVariants[choice.variant];
}

// The cuts of a choice. Fewer than wanted where the length has no more; count 1 for more than 16 states.
Segments cut(const Variant& variant, const Choice& choice, const Common& common);
// Of the ends kernels, for one piece.
Tiling ends_tiling(const Common& common);

// Whether a variant in blocks of so many warps is made for this count of states and fits the device.
bool can_run(const Variant& variant, int warps, const Common& common, const device::DeviceFacts& facts);
// Dynamic shared memory of a block.
int shared_bytes(const Variant& variant, int warps, int states, DType dtype);
// Blocks of the launch; negative where grid.x cannot hold them.
Index block_count(const Variant& variant, int warps, const Common& common);

// False where no block fits the device's shared memory. `halves`: as in BackwardArguments; not so where the
// length or the type already says no. The last few choices are remembered, in one table for
// all threads: callers hold the GIL or their own lock.
bool choose_forward(const Common& common, const device::DeviceFacts& facts, Choice* choice,
                    bool halves = true);
bool choose_backward(const Common& common, const device::DeviceFacts& facts, Choice* choice,
                     bool halves = true);

// The plans of a given choice: what plan_forward and plan_backward make of their own, and what a benchmark of
// the variants asks for.
bool plan_forward_as(const Forward& parameters, const Choice& choice, device::Plan* plan,
                     device::Message* message);
bool plan_backward_as(const Backward& parameters, const Choice& choice, const Choice& states_choice,
                      device::Plan* plan, device::Message* message);

// Choices that were measured (dispatch_table.def, which the tuner writes), and which of them a problem takes.

struct Measurement {
  int capability, multiprocessors;  // of the GPU; another count of multiprocessors has other waves
  DType dtype;
  int states, length;
  Index channels;  // batch times dim, in one group
  Choice choice;
};
struct DispatchTable {
  const Measurement* rows;
  int count;
};

extern const DispatchTable kForwardMeasured;
extern const DispatchTable kBackwardMeasured;

struct Found {
  const Measurement* row;  // null: none is near
  bool exact;              // it is of this very problem
};
// The nearest row of this kind of GPU, by the logarithms of length and channels. Float32 has its own rows;
// the two 16-bit types take each other's where there is none of their own as near. Up to 16 states a row
// stands for all counts that take the same slice. No row further off than a factor of 2.4 in length, 1.5 in
// channels, 2 in states above 16 is taken; none whose variant, of `variants`, needs other `places`.
Found find_measurement(const DispatchTable& table, const Common& common, const device::DeviceFacts& facts,
                       const Variant* variants = nullptr, bool places = true);

// As choose_forward and choose_backward, by a given table, and not remembered. A row that cannot run the
// problem is passed over. A neighbour's choice is taken only where it is not predicted to be much slower here
// than the best prediction: what filled the last wave there may just not fit here.
bool choose_forward_by(const DispatchTable& table, const Common& common, const device::DeviceFacts& facts,
                       Choice* choice);
bool choose_backward_by(const DispatchTable& table, const Common& common, const device::DeviceFacts& facts,
                        Choice* choice);

}  // namespace scankit::selective_scan
