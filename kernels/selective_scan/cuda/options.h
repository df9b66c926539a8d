// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a kernel does otherwise than its layout says: a type of compile-time constants, the last column of a
// row of variants.def. A new one derives from Plain and names what differs:
//   struct SixteenthByFma : Plain { static constexpr int kPolySixteenths = 1; };
// A constant that only one direction knows means nothing to the other.
namespace scankit::selective_scan {

struct Plain {
  static constexpr int kPolySixteenths = 0;    // of 16 exponentials of the scan, on the FMA pipe
  static constexpr bool kTanhSigmoid = false;  // one tanh.approx in place of ex2 and rcp, 16-bit types only
  static constexpr bool kOverlap = false;      // a tile's first pass beside the last pass of another
};

struct Overlap : Plain {
  static constexpr bool kOverlap = true;
};

}  // namespace scankit::selective_scan
