// SPDX-License-Identifier: Apache-2.0
#pragma once
// One vector of channels: the instruction set's own part by the compiler's flags, and what is the same for
// all. All of it has internal linkage: an inline function shared by two instruction sets would be linked
// once, perhaps as AVX-512.
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#include "kernels/selective_scan/cpu/simd_avx512.h"
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include "kernels/selective_scan/cpu/simd_avx2.h"
#else
#include "kernels/selective_scan/cpu/simd_sse2.h"
#endif

namespace scankit::selective_scan {
namespace {

inline Vec splat(float x) { return Vec{} + x; }
// memcpy() compiles to one unaligned load or store, and is allowed for any type.
inline Vec load(const float* from) {
  Vec x;
  __builtin_memcpy(&x, from, sizeof x);
  return x;
}
inline void store(float* to, Vec x) { __builtin_memcpy(to, &x, sizeof x); }

inline Vec load_elements(const float* from) { return load(from); }
inline void store_elements(float* to, Vec x) { store(to, x); }
inline Vec load_elements(const BFloat16* from) {
  ShortVec bits;
  __builtin_memcpy(&bits, from, sizeof bits);
  return (Vec)(__builtin_convertvector(bits, IntVec) << 16);
}
inline void store_elements(BFloat16* to, Vec x) {
  const IntVec bits = (IntVec)x;
  const IntVec rounded = bits + 0x7fff + ((bits >> 16) & 1);  // to nearest, ties to even
  const IntVec nan = x != x;
  const ShortVec packed = __builtin_convertvector(((nan & 0x7fc00000) | (~nan & rounded)) >> 16, ShortVec);
  __builtin_memcpy(to, &packed, sizeof packed);
}

// 2^f for |f| <= 1/2, with a relative error of 2e-9 before rounding. Exactly 1 at 0, and with an error in
// proportion to f near it, so that decays close to 1 keep their rate over thousands of steps. The
// coefficients are Lawson's minimax fit of (2^f - 1) / f.
inline Vec exp2_fraction(Vec f) {
  Vec p = splat(0x1.41fbbcp-13f);
  p = fma(p, f, splat(0x1.5f3e54p-10f));
  p = fma(p, f, splat(0x1.3b2d4cp-7f));
  p = fma(p, f, splat(0x1.c6aee8p-5f));
  p = fma(p, f, splat(0x1.ebfbdcp-3f));
  p = fma(p, f, splat(0x1.62e430p-1f));
  return fma(p, f, splat(1.0f));
}

inline Vec exp2(Vec x) {
  const Split parts = split(x);
  return scale_split(exp2_fraction(parts.f), parts.n);
}

// e^x with the argument reduced in two parts (Cody and Waite): x log2(e) alone would cost |x| roundings.
inline Vec exp(Vec x) {
  x = at_most(splat(104.0f), at_least(splat(-104.0f), x));
  const Vec n = round_to_int(x * 0x1.715476p+0f);
  const Vec r = fma(n, splat(-0x1.7f7d1cp-20f), fma(n, splat(-0x1.62e4p-1f), x));
  return scale(exp2_fraction(r * 0x1.715476p+0f), n);
}

// The value of softplus and its derivative.
struct Softplus {
  Vec value, slope;
};
// max(x, 0) + log1p(e^-|x|). From 20 on this is x in fp32, as upstream's threshold demands. The slope is 1
// / (1 + e^-x). Both use e^-|x|, which never overflows.
inline Softplus softplus(Vec x) {
  const Vec e = exp((Vec)((IntVec)x | (int)0x80000000));
  const Vec s = e / (e + 2.0f), s2 = s * s;  // log1p(e) = 2 atanh(s): no cancellation for a small e
  Vec p = splat(0.2801199f);
  p = fma(p, s2, splat(0.28001806f));
  p = fma(p, s2, splat(0.40021527f));
  p = fma(p, s2, splat(0.6666642f));
  p = fma(p, s2, splat(2.0f));
  const IntVec negative = x < 0.0f;
  const Vec top = (Vec)((negative & (IntVec)e) | (~negative & (IntVec)splat(1.0f)));
  return {fma(p, s, at_least(splat(0.0f), x)), top / (e + 1.0f)};
}

inline Vec sigmoid(Vec x) { return 1.0f / (exp(-x) + 1.0f); }

}  // namespace
}  // namespace scankit::selective_scan
