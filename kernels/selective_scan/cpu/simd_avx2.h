// SPDX-License-Identifier: Apache-2.0
#pragma once
// Vectors of AVX2 with FMA and F16C. Included by simd.h alone.
#include <immintrin.h>

#include "kernels/selective_scan/cpu/elements.h"

namespace scankit::selective_scan {
namespace {

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

}  // namespace
}  // namespace scankit::selective_scan

#include "kernels/selective_scan/cpu/simd_split.h"
