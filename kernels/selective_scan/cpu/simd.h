// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stddef.h>
#ifdef __aarch64__
#include <arm_neon.h>
#else
#include <immintrin.h>
#endif

// One vector of channels: the instruction set's own part by the compiler's flags, and what is the same for
// all. All of it has internal linkage: an inline function shared by two instruction sets would be linked
// once, perhaps as AVX-512.
namespace scankit::selective_scan {

// The 16-bit storage types of the tensors, as bits: the compiler's own types would call into libgcc.
struct Half {
  unsigned short bits;
};
struct BFloat16 {
  unsigned short bits;
};

namespace {

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

#define SCANKIT_AVX512
// AVX-512 has 32 registers, so that more states fit than with AVX2.
inline constexpr int kLanes = 16;
inline constexpr int kForwardStates = 8;   // states in registers at once
inline constexpr int kBackwardStates = 4;  // the same in the backward
using Vec = float __attribute__((vector_size(64)));
using IntVec = int __attribute__((vector_size(64)));
using ShortVec = unsigned short __attribute__((vector_size(32)));

inline Vec fma(Vec a, Vec b, Vec c) { return (Vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
// x where x is NaN: the instruction returns its second operand then.
inline Vec at_least(Vec bound, Vec x) { return (Vec)_mm512_max_ps((__m512)bound, (__m512)x); }
inline Vec at_most(Vec bound, Vec x) { return (Vec)_mm512_min_ps((__m512)bound, (__m512)x); }
inline Vec round_to_int(Vec x) {
  return (Vec)_mm512_roundscale_ps((__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
// p * 2^n for a whole n of any size.
inline Vec scale(Vec p, Vec n) { return (Vec)_mm512_scalef_ps((__m512)p, (__m512)n); }

inline Vec load_elements(const Half* from) {
  return (Vec)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)from));
}
inline void store_elements(Half* to, Vec x) {
  _mm256_storeu_si256((__m256i*)to,
                      _mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

#else

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

// kForwardStates and kBackwardStates are the states whose values are kept in registers at once: AVX2
// has 16 registers.
inline constexpr int kLanes = 8;
inline constexpr int kForwardStates = 4;
inline constexpr int kBackwardStates = 2;
using Vec = float __attribute__((vector_size(32)));
using IntVec = int __attribute__((vector_size(32)));
using ShortVec = unsigned short __attribute__((vector_size(16)));

inline Vec fma(Vec a, Vec b, Vec c) { return (Vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
// x where x is NaN: the instruction returns its second operand then.
inline Vec at_least(Vec bound, Vec x) { return (Vec)_mm256_max_ps((__m256)bound, (__m256)x); }
inline Vec at_most(Vec bound, Vec x) { return (Vec)_mm256_min_ps((__m256)bound, (__m256)x); }
inline IntVec nearest_int(Vec x) { return (IntVec)_mm256_cvtps_epi32((__m256)x); }
inline Vec to_float(IntVec x) { return (Vec)_mm256_cvtepi32_ps((__m256i)x); }

inline Vec load_elements(const Half* from) {
  return (Vec)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)from));
}
inline void store_elements(Half* to, Vec x) {
  _mm_storeu_si128((__m128i*)to, _mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

#elif defined(__aarch64__)

// NEON, which every aarch64 has, with 32 registers.
inline constexpr int kLanes = 4;
inline constexpr int kForwardStates = 8;
inline constexpr int kBackwardStates = 4;
using Vec = float __attribute__((vector_size(16)));
using IntVec = int __attribute__((vector_size(16)));
using ShortVec = unsigned short __attribute__((vector_size(8)));

inline Vec fma(Vec a, Vec b, Vec c) { return (Vec)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b); }
// NaN where x is NaN: the instructions return a NaN of either operand.
inline Vec at_least(Vec bound, Vec x) { return (Vec)vmaxq_f32((float32x4_t)bound, (float32x4_t)x); }
inline Vec at_most(Vec bound, Vec x) { return (Vec)vminq_f32((float32x4_t)bound, (float32x4_t)x); }
// Ties to even. What is too large becomes the largest int, and a NaN becomes 0, other than on x86-64.
inline IntVec nearest_int(Vec x) { return (IntVec)vcvtnq_s32_f32((float32x4_t)x); }
inline Vec to_float(IntVec x) { return (Vec)vcvtq_f32_s32((int32x4_t)x); }

inline Vec load_elements(const Half* from) {
  ShortVec bits;
  __builtin_memcpy(&bits, from, sizeof bits);
  return (Vec)vcvt_f32_f16((float16x4_t)bits);
}
inline void store_elements(Half* to, Vec x) {
  const float16x4_t bits = vcvt_f16_f32((float32x4_t)x);
  __builtin_memcpy(to, &bits, sizeof bits);
}

#else

// SSE2, which every x86-64 has.
inline constexpr int kLanes = 4;
inline constexpr int kForwardStates = 4;
inline constexpr int kBackwardStates = 2;
using Vec = float __attribute__((vector_size(16)));
using IntVec = int __attribute__((vector_size(16)));
using ShortVec = unsigned short __attribute__((vector_size(8)));

// Two roundings instead of one; SSE2 has no fused multiply-add.
inline Vec fma(Vec a, Vec b, Vec c) { return a * b + c; }
// x where x is NaN: the instruction returns its second operand then.
inline Vec at_least(Vec bound, Vec x) { return (Vec)_mm_max_ps((__m128)bound, (__m128)x); }
inline Vec at_most(Vec bound, Vec x) { return (Vec)_mm_min_ps((__m128)bound, (__m128)x); }
inline IntVec nearest_int(Vec x) { return (IntVec)_mm_cvtps_epi32((__m128)x); }
inline Vec to_float(IntVec x) { return (Vec)_mm_cvtepi32_ps((__m128i)x); }

// Without F16C the conversions are done with integers.
inline Vec load_elements(const Half* from) {
  IntVec magnitude, sign;
  for (int i = 0; i < kLanes; ++i) {
    magnitude[i] = (from[i].bits & 0x7fff) << 13;
    sign[i] = (from[i].bits & 0x8000) << 16;
  }
  // 2^112 moves the exponent's bias from 15 to 127, denormals included; an exponent of 31 becomes 255.
  const IntVec scaled = (IntVec)((Vec)magnitude * 0x1p112f);
  const IntVec special = magnitude >= 0x0f800000;
  return (Vec)((special & (magnitude | 0x7f800000)) | (~special & scaled) | sign);
}

// Rounds to nearest, ties to even. A NaN keeps the upper bits of its payload and becomes quiet.
inline unsigned short half_bits(float x) {
  unsigned bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  const unsigned sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return (unsigned short)(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u) return (unsigned short)(sign | 0x7c00u);  // rounds to 65536 or more
  if (magnitude < 0x38800000u) {  // denormal: adding 1/2 leaves the rounded multiple of 2^-24 in the low bits
    float shifted = __builtin_fabsf(x) + 0.5f;
    __builtin_memcpy(&bits, &shifted, sizeof bits);
    return (unsigned short)(sign | (bits - 0x3f000000u));
  }
  return (unsigned short)(sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13));
}
inline void store_elements(Half* to, Vec x) {
  for (int i = 0; i < kLanes; ++i) to[i].bits = half_bits(x[i]);
}

#endif

// Powers of two where the processor has no scalef: all but AVX-512.
inline Vec round_to_int(Vec x) { return to_float(nearest_int(x)); }

// p * 2^n for a whole n in [-250, 250], by two exact factors, so that denormals and infinity come out right.
inline Vec scale(Vec p, Vec n) {
  const IntVec whole = nearest_int(n), low = whole >> 1, high = whole - low;
  return p * (Vec)((low + 127) << 23) * (Vec)((high + 127) << 23);
}

// x = n + f with n whole in [-127, 128] and |f| <= 1/2. A NaN gives n = INT_MIN or 0, whose shift below is 0.
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

#endif

#ifdef SCANKIT_AVX512
// gcc makes an addition of 0 and a shuffle of the other, where a load can repeat what it reads.
inline Vec splat(float x) { return (Vec)_mm512_set1_ps(x); }
#else
inline Vec splat(float x) { return Vec{} + x; }
#endif
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

#ifdef SCANKIT_AVX512
// By sixteenths, x = n + f with |f| <= 1/32: 2^n's fraction from a table, with what its rounding to fp32 lost, and a
// polynomial of degree 3 that has an error of 1.7e-9. Four multiplications in place of six; the rest goes to other
// pipes than theirs. Exactly 1 at 0, and the error in proportion to f near it, as above.
inline Vec exp2(Vec x) {
  const Vec table = {0x1p+0f,        0x1.0b5586p+0f, 0x1.172b84p+0f, 0x1.2387a6p+0f,
                     0x1.306fe0p+0f, 0x1.3dea64p+0f, 0x1.4bfdaep+0f, 0x1.5ab07ep+0f,
                     0x1.6a09e6p+0f, 0x1.7a1148p+0f, 0x1.8ace54p+0f, 0x1.9c4918p+0f,
                     0x1.ae89fap+0f, 0x1.c199bep+0f, 0x1.d5818ep+0f, 0x1.ea4afap+0f};
  const Vec lost = {0.0f,
                    0x1.8d96d4p-25f,
                    -0x1.9c0c22p-27f,
                    0x1.964904p-25f,
                    0x1.125002p-25f,
                    0x1.370be4p-25f,
                    -0x1.0a3550p-25f,
                    -0x1.00d8acp-27f,
                    0x1.26055cp-26f,
                    -0x1.05cb44p-25f,
                    0x1.67a1cap-28f,
                    0x1.a3b5e4p-28f,
                    -0x1.f9c304p-27f,
                    -0x1.6961b4p-28f,
                    -0x1.a5217cp-28f,
                    0x1.61428ep-28f};
  // 1.5 * 2^19, whose last bit is a sixteenth: so x is rounded to sixteenths, and the sum's four last bits are those of n.
  // Beyond 2^18, where they are not, the result is infinite or 0.
  const Vec sum = x + 786432.0f, n = sum - 786432.0f;
  const Vec f = (Vec)_mm512_reduce_ps((__m512)x, 4 << 4 | _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512i index = (__m512i)sum;
  const Vec high = (Vec)_mm512_permutexvar_ps(index, (__m512)table);
  const Vec low = (Vec)_mm512_permutexvar_ps(index, (__m512)lost);
  Vec p = fma(splat(0x1.c6b46ap-5f), f, splat(0x1.ebfff4p-3f));
  p = fma(p, f, splat(0x1.62e430p-1f));
  return scale(fma(high, fma(p, f, low), high), n);  // scalef takes the whole part of n
}
#else
inline Vec exp2(Vec x) {
  const Split parts = split(x);
  return scale_split(exp2_fraction(parts.f), parts.n);
}
#endif

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

// e^(dt A) of a complex A, one vector of channels at a time.

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
