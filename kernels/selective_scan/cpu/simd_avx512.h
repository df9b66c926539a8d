// SPDX-License-Identifier: Apache-2.0
#pragma once
// Vectors of AVX-512 (F, BW, DQ, VL). Included by simd.h alone.
#include <immintrin.h>

#include "kernels/selective_scan/cpu/elements.h"

namespace scankit::selective_scan {
namespace {

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

// x = n + f with n whole and |f| <= 1/2. An infinite x gives f = 0 and scale() does the rest: no clamps.
struct Split {
  Vec n, f;
};
inline Split split(Vec x) {
  return {round_to_int(x), (Vec)_mm512_reduce_ps((__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
inline Vec scale_split(Vec p, Vec n) { return scale(p, n); }

inline Vec load_elements(const Half* from) {
  return (Vec)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)from));
}
inline void store_elements(Half* to, Vec x) {
  _mm256_storeu_si256((__m256i*)to,
                      _mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

}  // namespace
}  // namespace scankit::selective_scan
