// SPDX-License-Identifier: Apache-2.0
#pragma once
// Vectors of SSE2, which every x86-64 has. Included by simd.h alone.
#include <emmintrin.h>

#include "kernels/selective_scan/cpu/elements.h"

namespace scankit::selective_scan {
namespace {

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

}  // namespace
}  // namespace scankit::selective_scan

#include "kernels/selective_scan/cpu/simd_split.h"
