// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a kernel does otherwise than its layout says: a type of compile-time constants, the last column of a
// row of variants.def. A new one derives from Plain and names what differs:
//   struct SixteenthByFma : Plain { static constexpr int kPolySixteenths = 1; };
// A constant that only one direction knows means nothing to the other.
namespace scankit::selective_scan {

struct Plain {
  static constexpr int kPolySixteenths = 0;  // of 16 exponentials of the scan, on the FMA pipe
  static constexpr int kQuads = 0;           // of steps that the forward takes at once; 0: as the layout says
  static constexpr bool kOverlap = false;    // a tile's first pass beside the last pass of another
  static constexpr bool kTwoBarriers = false;  // a tile of the backward, not three
  static constexpr bool kRowTable = false;     // the backward finds its rows once, in shared memory
  static constexpr int kReplayQuads = 2;       // of the backward's first pass from test to test of its loop
};

struct Overlap : Plain {
  static constexpr bool kOverlap = true;
};
struct OneQuad : Plain {
  static constexpr int kQuads = 1;
};
struct TwoQuads : Plain {
  static constexpr int kQuads = 2;
};
struct SixteenthByFma : Plain {
  static constexpr int kPolySixteenths = 1;
};
struct EighthByFma : Plain {
  static constexpr int kPolySixteenths = 2;
};
struct ThreeSixteenthsByFma : Plain {
  static constexpr int kPolySixteenths = 3;
};
struct TwoBarriers : Plain {
  static constexpr bool kTwoBarriers = true;
};
struct RowTable : TwoBarriers {
  static constexpr bool kRowTable = true;
};
struct StraightReplay : RowTable {
  static constexpr int kReplayQuads = 7;
};

}  // namespace scankit::selective_scan
