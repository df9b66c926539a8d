// SPDX-License-Identifier: Apache-2.0
#pragma once
// Powers of two where the processor has no scalef: AVX2 and SSE2. Included by their headers alone.
namespace scankit::selective_scan {
namespace {

inline Vec round_to_int(Vec x) { return to_float(nearest_int(x)); }

// p * 2^n for a whole n in [-250, 250], by two exact factors, so that denormals and infinity come out right.
inline Vec scale(Vec p, Vec n) {
  const IntVec whole = nearest_int(n), low = whole >> 1, high = whole - low;
  return p * (Vec)((low + 127) << 23) * (Vec)((high + 127) << 23);
}

// x = n + f with n whole in [-127, 128] and |f| <= 1/2. A NaN gives n = INT_MIN, whose shift below is 0.
struct Split {
  IntVec n;
  Vec f;
};
inline Split split(Vec x) {
  const Vec bounded = at_most(Vec{} + 128.0f, at_least(Vec{} - 127.0f, x));
  const IntVec n = nearest_int(bounded);
  return {n, bounded - to_float(n)};
}
// Adds n to p's exponent, one instruction for a multiplication by two factors. Right at the top: x = 128 has
// p = 1 and becomes infinity, and a smaller x with n = 128 has p < 1. At the bottom, below 2^-126, a number
// smaller than 2^-126.
inline Vec scale_split(Vec p, IntVec n) { return (Vec)((IntVec)p + (n << 23)); }

}  // namespace
}  // namespace scankit::selective_scan
