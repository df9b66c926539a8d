// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a kernel does otherwise than its layout says: a type of compile-time constants, the last column
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
struct OptionsOf<ConstantAsync, 4> {
  using Type = ConstantPlain;
};

}  // namespace scankit::selective_scan
