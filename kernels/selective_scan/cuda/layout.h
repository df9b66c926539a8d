// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/arguments.h"

// How the kernels share out channels, states and shared memory: constants that the planner and the device
// code share, so that what a launch reserves is what the kernel uses.
//
// First the options: what a kernel does otherwise than its layout says: a type of compile-time constants, the last column
// of a row of variants.def, which the kernels take as a template argument O. A new one derives from
// Plain and names what differs:
//   struct OneQuad : Plain { static constexpr int kQuads = 1; };
// A constant that only one direction knows means nothing to the other.
namespace scankit::selective_scan {

struct Plain {
  static constexpr int kQuads = 0;  // of steps that the forward takes at once; 0: as the layout says
  static constexpr bool kTwoBarriers = false;  // a tile of the backward, not three
  static constexpr bool kRowTable = false;     // the backward finds its rows once, in shared memory
  static constexpr bool kAsync = false;        // what the backward reads comes a tile ahead, by cp.async
  static constexpr int kReplayQuads = 2;       // of the backward's first pass from test to test of its loop
  static constexpr bool kConstant = false;     // B, C or both are constant (constant.cuh)
  static constexpr bool kPacked = false;       // a block has one of several packed sequences (packed.cuh)
  static constexpr int kTeam = 1;              // warps that share channels, not states (state_slices.cuh)
  static constexpr bool kDirect = false;       // of 1x16: fp32's, most of whose rows are not copied
  static constexpr bool kOdd = false;  // for 16-bit rows that start anywhere (odd_rows.cuh, state_slices.cuh)
};

// A candidate's (tune_forward.def).
struct TwoQuads : Plain {
  static constexpr int kQuads = 2;
};
// No loop in the replay: seven quads, one text.
struct Straight : Plain {
  static constexpr bool kTwoBarriers = true, kRowTable = true;
  static constexpr int kReplayQuads = 7;
};
// Of 16-bit tensors: the rows of others do not fit into shared memory.
struct Async : Straight {
  static constexpr bool kAsync = true;
};

// Of the loop over the states (state_loop_backward.cuh).
struct StateLoop : Plain {};
struct StateLoopDirect : StateLoop {
  static constexpr bool kDirect = true;
};

// Of more than 16 states in slices of 16.
struct TwoWarps : Plain {
  static constexpr int kTeam = 2;
};
struct FourWarps : Plain {
  static constexpr int kTeam = 4;
};
struct Odd : Plain {
  static constexpr bool kOdd = true;
};
struct OddFourWarps : FourWarps {
  static constexpr bool kOdd = true;
};
// Of the forward (odd_rows.cuh).
struct OddForward : Plain {
  static constexpr bool kOdd = true;
};
// A candidate's (tune_backward.def).
struct EightWarps : Plain {
  static constexpr int kTeam = 8;
};

struct ConstantForward : Plain {
  static constexpr bool kConstant = true;
};
// Without Straight's long replay: the loops are there for each of three kinds.
struct ConstantAsync : Async {
  static constexpr bool kConstant = true;
  static constexpr int kReplayQuads = 1;
};
// fp32's. A table of rows would spill.
struct ConstantPlain : Plain {
  static constexpr bool kConstant = true;
  static constexpr int kReplayQuads = 1;
};

struct PackedForward : Plain {
  static constexpr bool kPacked = true;
};
struct PackedAsync : Async {
  static constexpr bool kPacked = true;
};
// fp32's.
struct PackedStraight : Straight {
  static constexpr bool kPacked = true;
};

// The options of a kernel whose tensors have elements of kSize bytes: fp32 kernels take another form
// of some.
template <class O, int kSize>
struct OptionsOf {
  using Type = O;
};
template <>
struct OptionsOf<Async, 4> {
  using Type = Straight;
};
template <>
struct OptionsOf<StateLoop, 4> {
  using Type = StateLoopDirect;
};
template <>
struct OptionsOf<PackedAsync, 4> {
  using Type = PackedStraight;
};
template <>
struct OptionsOf<ConstantAsync, 4> {
  using Type = ConstantPlain;
};

inline constexpr int kTile = kStateInterval;  // steps
// Floats from one row of a tile to the next in shared memory: rows side by side start in different groups of
// four banks, so that the 16-byte reads of a warp do not meet.
inline constexpr int kPitch = 36;
// The general kernels (general.cuh): lanes of a channel, states of each in a slice, channels of a warp, and
// warps of a block.
inline constexpr int kGeneralLanes = 8, kGeneralPer = 2, kGeneralChannels = 4, kGeneralWarps = 4;
inline constexpr int kGeneralSlice = kGeneralLanes * kGeneralPer;

// The kernels that find the ends of pieces (ends.cuh): lanes of a channel, states of each, warps of a block.
inline constexpr int kEndsLanes = 4, kEndsPer = 4, kEndsWarps = 4;

// kLanes lanes share a channel, each with kPer of a slice's states (lane q's s-th is state kPer * q + s),
// and each thread has kChannels channels (group + kGroups * ch, where group is lane / kLanes). The
// forward's 4x4, Layout<4, 4, 2>, has 16 channels a warp: lanes 4 g to 4 g + 3 have channels g and g + 8,
// four of 16 states each. More lanes mean more warps for few channels, and more shuffles for y; more
// states or channels a lane, more registers and more work between waits.
//
// Element-wise work is laid out otherwise: a piece is eight steps of one channel, four pieces a row, and a
// lane has the pieces lane + 32 i of the warp.
template <int kLanes_, int kPer_, int kChannels_>
struct Layout {
  static constexpr int kLanes = kLanes_, kPer = kPer_, kChannels = kChannels_;
  static constexpr int kSlice = kLanes * kPer;
  static constexpr int kGroups = 32 / kLanes;
  static constexpr int kWarpChannels = kGroups * kChannels;
  static constexpr int kPieces = (kWarpChannels * 4 + 31) / 32;
  static constexpr int kRows = kWarpChannels * kPitch;      // floats of one array of rows of a warp
  static constexpr int kProjections = 2 * kSlice * kPitch;  // floats of B and C of a tile
  // Quads of steps that the forward takes at once: with few values a thread, one quad's waits are not hidden.
  static constexpr int kQuads = kChannels * kPer == 1 ? 4 : kChannels * kPer == 4 ? 1 : 2;
  // Tiles that the forward takes from one barrier to the next: enough that every lane has a piece.
  static constexpr int kSubtiles = kWarpChannels >= 8 ? 1 : 8 / kWarpChannels;
  static constexpr int kSliceStates = kChannels * kPer * 32;  // states of a warp in one slice
};

// Of few states (step_lanes.cuh): a lane has all of a channel's, of eight steps, and a channel four lanes.
template <int kPer_, int kChannels_>
struct Layout<1, kPer_, kChannels_> {
  static constexpr int kLanes = 1, kPer = kPer_, kChannels = kChannels_;
  static constexpr int kSlice = kPer, kGroups = 8, kWarpChannels = kGroups * kChannels;
};

// Rows of 16-bit elements that start anywhere, in shared memory as they are in global memory (odd_rows.cuh): the five
// 16-byte vectors that a tile of one row is part of. Neighbouring rows of an array are 16 banks apart, so that what eight
// lanes touch of two rows, 16 bytes each, is all 32 banks; and of an odd length two rows with the same first word
// differ by an odd number.
struct OddLayout {
  static constexpr int kRow = 20;                             // floats of an array's row
  static constexpr int kU = 0, kDelta = kRow, kZ = 2 * kRow;  // of a channel's, which are side by side
  static constexpr int kOut = 3 * kRow, kOutZ = 4 * kRow, kPitch = 112;
  static constexpr int kProjectionPitch = 48;  // of a state's rows of B and C
};

// Shared memory in floats: `kBlock`, and for each warp `kWarp` + slices * `kWarpSlice`.
template <class L, bool kSliced, class O>
struct ForwardMemory {
  static constexpr int kSpanTiles = L::kSubtiles;
  static constexpr int kFewestWarps = kSliced && L::kSlice == 16 ? 1
                                      : L::kSubtiles > 1         ? 4
                                                         : 2;  // else a thread carries too much of B, C
  // One in use, one being filled; behind them what fills it.
  static constexpr int kOddRows = (kSliced ? 2 : 2 * L::kSubtiles) * L::kProjections;
  static constexpr int kBlock = kOddRows + (O::kOdd ? L::kSlice * OddLayout::kProjectionPitch : 0);
  // dt, w and, where it is not w, y; behind them the rows as they are in global memory.
  static constexpr int kOddWarp = (kSliced ? 3 : 2) * L::kSubtiles * L::kRows;
  static constexpr int kWarp = kOddWarp + (O::kOdd ? L::kWarpChannels * OddLayout::kPitch : 0);
  // States of the slices not in registers and, of wide slices, A.
  static constexpr int kWarpSlice = !kSliced ? 0 : L::kSlice > 16 ? 2 * L::kSliceStates : L::kSliceStates;
};

template <int kPer, int kChannels, class O>
struct ForwardMemory<Layout<1, kPer, kChannels>, false, O> {
  static constexpr int kSpanTiles = 1, kFewestWarps = 2, kBlock = 0, kWarp = 0, kWarpSlice = 0;
};

template <class L>
struct EndsMemory {
  static constexpr int kBlock = L::kProjections;  // B or C: one in use, one being filled
  static constexpr int kWarp = 2 * L::kRows;
};

template <class L, bool kSliced, class O>
struct BackwardMemory {
  static_assert(!O::kAsync || (O::kRowTable && !kSliced));
  static constexpr int kFewestWarps = 1, kSpanTiles = 1;
  static constexpr int kRowArrays = kSliced ? 5 : 4;  // dt, w, dy, r and, where it is not w, s
  // For each of eight quads the states before it; when those are used up, dB and dC summed over the channels.
  static constexpr int kPart = 2 * L::kSlice * 4;
  static constexpr int kKept = L::kSliceStates > kPart ? L::kSliceStates : kPart;
  // Behind B and C, where O::kAsync, their pieces as they are in global memory, 16 bytes each, and where
  // those are.
  static constexpr int kBlock = L::kProjections + (O::kAsync ? 2 * L::kSlice * 4 * 6 : 0);
  // Behind it all, where O::kRowTable: for every channel that a piece 0 is of the addresses of eight rows and
  // of its states.
  static constexpr int kTable = kRowArrays * L::kRows + 8 * kKept;
  static constexpr int kRaw = kTable + (O::kRowTable ? 9 * 8 * 2 : 0);
  // Behind that, where O::kAsync: pieces as they are in global memory, a lane's 16 bytes each, in seven
  // arrays: dout, z, out, and two each of u and delta. Then the states before a tile.
  static constexpr int kRawArray = O::kAsync ? L::kPieces * 32 * 4 : 0;
  static constexpr int kStart = kRaw + 7 * kRawArray;
  // Behind all, where O::kConstant and the rows leave room: the sums of constant ones' gradients, from tile
  // to tile, which fp32 has no registers for.
  static constexpr bool kSumsApart = O::kConstant && !O::kAsync;
  static constexpr int kSums = kStart + (O::kAsync ? L::kSliceStates : 0);
  static constexpr int kWarp = kSums + (kSumsApart ? 2 * L::kSliceStates : 0);
  static constexpr int kWarpSlice = 0;
};

template <int kPer, int kChannels, class O>
struct BackwardMemory<Layout<1, kPer, kChannels>, false, O> {
  static constexpr int kFewestWarps = 1, kSpanTiles = 1;
  static constexpr int kSums = 2 * kPer * kTile;  // dB and dC of a tile, over the warp's channels
  static constexpr int kTogether = 4;             // tiles from one barrier to the next
  static constexpr int kTable = 12;               // addresses of rows, of each of eight channels
  static constexpr int kBlock = 0, kWarp = 2 * kTogether * kSums + kTable * 8 * 2, kWarpSlice = 0;
};

// Of 16 states, looped over (state_loop_backward.cuh): what a slice has.
template <int kChannels>
struct StateLoopMemory {
  // Rows of B and C: the 16-byte reads of two neighbouring rows, 16 floats of each, are 32 banks. In the gap
  // of 16 floats are the row's pieces as they are in global memory; behind the rows, where those are.
  static constexpr int kPitch = 48;
  static constexpr int kProjections = 2 * 16 * kPitch;
  // What each lane keeps of a state, 32 lanes a slot, and a gap for the writes of a channel's four lanes.
  static constexpr int kSlot = 32 * 2 * kChannels + 2 * kChannels;
  static constexpr int kA = 16 * kSlot;
  static constexpr int kPart = kA + 16 * 8 * kChannels;  // dB and dC over the warp's channels
  static constexpr int kTable = kPart + 2 * 16 * kTile;  // where rows of each channel are
};
template <int kChannels, class O>
struct BackwardMemory<Layout<1, 16, kChannels>, false, O> : StateLoopMemory<kChannels> {
  using Base = StateLoopMemory<kChannels>;
  static constexpr int kFewestWarps = 1, kSpanTiles = 1, kTeam = 1;
  // Rows start at 8-byte places, or anywhere: then they come as the vectors that they are part of (odd_rows.cuh), and
  // pieces of u and delta are kept from when a tile begins until it ends.
  static constexpr bool kAnyPlaces = false, kVectors = O::kOdd, kDirect = O::kDirect;
  static_assert(!kVectors || kChannels == 1);
  static constexpr int kAddresses = Base::kProjections;
  static constexpr int kOddProjections = kAddresses + 2 * 16 * 4 * 2;
  // Behind it B's and C's pieces, where the gaps have no room for them.
  static constexpr int kBlock = kOddProjections + (kVectors  ? 2 * 16 * OddLayout::kRow
                                                   : kDirect ? 2 * 16 * 4 * 8
                                                             : 0);
  // Where rows of the warp's first channel and each channel's states are, else where all rows are; then a lane's
  // pieces, seven arrays as above.
  static constexpr int kRaw = Base::kTable + (kVectors ? 36 : 10 * kChannels * 8 * 2);
  // Rows of dout, z, out and u, 4 times kRow floats side by side, then of delta, then pieces of u and delta.
  static constexpr int kOddDelta = kRaw + 8 * 4 * OddLayout::kRow;
  static constexpr int kOddPieces = kOddDelta + 8 * OddLayout::kRow;
  // fp32's: dout as it is in global memory, then u and delta from when a tile begins until it ends, two halves
  // of a lane's 32 bytes each.
  static constexpr int kStart = kVectors  ? kOddPieces + 2 * 128
                                : kDirect ? kRaw + 6 * kChannels * 128
                                          : kRaw + 7 * kChannels * 128;  // its states before a tile
  static constexpr int kWarp = kStart + kChannels * 128;
  static constexpr int kWarpSlice = 0;
};
// Of more states, in slices (state_slices.cuh): no table of B's and C's addresses, and no states ahead, so that
// a team of four has room for sixteen warps.
template <int kChannels, class O>
struct BackwardMemory<Layout<1, 16, kChannels>, true, O> : StateLoopMemory<kChannels> {
  using Base = StateLoopMemory<kChannels>;
  static constexpr int kTeam = O::kTeam, kFewestWarps = kTeam, kSpanTiles = 1;
  static constexpr bool kAnyPlaces = O::kOdd, kVectors = false, kDirect = false;
  static constexpr int kBlock = kTeam * Base::kProjections;  // a slice for each warp of a team
  static constexpr int kRaw = Base::kTable + 9 * kChannels * 8 * 2;
  static constexpr int kWarp = kRaw + 7 * kChannels * 128;
  static constexpr int kWarpSlice = 0;
};
// Two blocks of eight warps to a multiprocessor of 228 KB, of which each block takes one for the system.
template <class Memory>
constexpr bool kTwoBlocksFit = 2 * (4 * (Memory::kBlock + 8 * Memory::kWarp) + 1024) <= 228 * 1024;
static_assert(kTwoBlocksFit<BackwardMemory<Layout<1, 16, 1>, false, StateLoop>> &&
              kTwoBlocksFit<BackwardMemory<Layout<1, 16, 1>, false, StateLoopDirect>>);

}  // namespace scankit::selective_scan
