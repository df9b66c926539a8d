// SPDX-License-Identifier: Apache-2.0
#pragma once
// e^(dt A) of a complex A, one vector of channels at a time.
#include "kernels/selective_scan/cpu/simd.h"

namespace scankit::selective_scan {
namespace {

// A vector of complex numbers: real parts and imaginary parts in a register each.
struct Complex {
  Vec re, im;
};

inline Vec choose(IntVec mask, Vec yes, Vec no) { return (Vec)((mask & (IntVec)yes) | (~mask & (IntVec)no)); }
inline Vec negate_where(IntVec mask, Vec x) { return (Vec)((mask & (int)0x80000000) ^ (IntVec)x); }

// cos and sin of dt * rate. With an fma, the rounding of the product is corrected: at 1000 radians it is
// 3e-5. NaN for an infinite angle. Beyond some 10^7, where fp32 has no meaningful angle any more, the
// result is anything in [-1, 1].
inline Complex turn(Vec dt, Vec rate) {
  const Vec angle = dt * rate, rounding = fma(dt, rate, -angle);
  const Vec n = round_to_int(angle * 0x1.45f306p-1f);  // quarter turns
  // pi / 2 in three parts (Cody and Waite); the first two are short, so that n times them is exact.
  Vec r = fma(n, splat(-1.5703125f), angle);
  r = fma(n, splat(-4.837512969970703125e-4f), r);
  r = fma(n, splat(-7.54978995489188216e-8f), r);
  r = at_most(splat(1.0f), at_least(splat(-1.0f), r)) + rounding;
  const Vec r2 = r * r;
  // Cephes' sinf and cosf on [-pi / 4, pi / 4].
  Vec sine = fma(r2, splat(-1.9515295891e-4f), splat(8.3321608736e-3f));
  sine = fma(r2, sine, splat(-1.6666654611e-1f));
  sine = fma(r2 * r, sine, r);
  Vec cosine = fma(r2, splat(2.443315711809948e-5f), splat(-1.388731625493765e-3f));
  cosine = fma(r2, cosine, splat(4.166664568298827e-2f));
  cosine = fma(r2 * r2, cosine, fma(r2, splat(-0.5f), splat(1.0f)));
  const Vec quarter = n - 4.0f * round_to_int(n * 0.25f);  // -2, -1, 0, 1 or 2
  const IntVec odd = quarter * quarter == 1.0f;
  return {negate_where((quarter > 0.5f) | (quarter < -1.5f), choose(odd, sine, cosine)),
          negate_where((quarter < -0.5f) | (quarter > 1.5f), choose(odd, cosine, sine))};
}

// e^(dt A), from A's real part times log2(e) and its imaginary part. Where the size underflows, the angle
// does not matter (dt A = -inf + i inf above all), and the result is 0, as with C's cexp.
inline Complex complex_decay(Vec dt, Vec rate, Vec angular) {
  const Vec size = exp2(dt * rate);
  const IntVec gone = size < 0x1p-126f;
  const Complex direction = turn((Vec)(~gone & (IntVec)dt), angular);
  return {size * direction.re, size * direction.im};
}

}  // namespace
}  // namespace scankit::selective_scan
