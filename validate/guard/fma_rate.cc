// SPDX-License-Identifier: Apache-2.0
// How many fp32 multiply-adds this thread's core does a second at most: chains that wait for nothing but
// themselves, as many as two pipes of five cycles' latency need. A matrix product reaches less, so that a
// good kernel would stand at more than 100 % of it.
#ifdef __aarch64__
#include <arm_neon.h>
#else
#include <immintrin.h>
#endif
#include <time.h>

#include "validate/guard/guard.h"

namespace {

#ifdef __aarch64__
constexpr int kChains = 16, kTurns = 4096;  // four pipes of four cycles' latency: Neoverse V1 and V2
#else
constexpr int kChains = 12, kTurns = 4096;
#endif

double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

#ifdef __aarch64__

// Converges to 1000 b: never a denormal, never infinite.
float turns_of_4(float start) {
  float32x4_t x[kChains];
  const float32x4_t a = vdupq_n_f32(0.999f), b = vdupq_n_f32(1e-3f);
  for (int i = 0; i < kChains; ++i) x[i] = vdupq_n_f32(start + static_cast<float>(i));
  for (int turn = 0; turn < kTurns; ++turn) {
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) x[i] = vfmaq_f32(b, x[i], a);
  }
  for (int i = 1; i < kChains; ++i) x[0] = vaddq_f32(x[0], x[i]);
  return vgetq_lane_f32(x[0], 0);
}

#else

// Converges to 1000 b: never a denormal, never infinite.
__attribute__((target("avx2,fma"))) float turns_of_8(float start) {
  __m256 x[kChains];
  const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(1e-3f);
  for (int i = 0; i < kChains; ++i) x[i] = _mm256_set1_ps(start + static_cast<float>(i));
  for (int turn = 0; turn < kTurns; ++turn) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) x[i] = _mm256_fmadd_ps(x[i], a, b);
  }
  for (int i = 1; i < kChains; ++i) x[0] = _mm256_add_ps(x[0], x[i]);
  return _mm256_cvtss_f32(x[0]);
}

__attribute__((target("avx512f"))) float turns_of_16(float start) {
  __m512 x[kChains];
  const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(1e-3f);
  for (int i = 0; i < kChains; ++i) x[i] = _mm512_set1_ps(start + static_cast<float>(i));
  for (int turn = 0; turn < kTurns; ++turn) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) x[i] = _mm512_fmadd_ps(x[i], a, b);
  }
  for (int i = 1; i < kChains; ++i) x[0] = _mm512_add_ps(x[0], x[i]);
  return _mm512_cvtss_f32(x[0]);
}

#endif

// The widest multiply-add of this processor; no function: it has none.
struct MultiplyAdd {
  int lanes;
  float (*turns)(float start);
};
MultiplyAdd widest() {
#ifdef __aarch64__
  return {4, turns_of_4};  // SVE is as many lanes a cycle on all but the A64FX
#else
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return {16, turns_of_16};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {8, turns_of_8};
  return {0, nullptr};
#endif
}

// Each call starts from the previous result: otherwise the compiler could make one call for all of them.
volatile float passed_on;  // from call to call: else one would do for all

}  // namespace

// Multiply-adds per second of one core, the best of all batches in `seconds`; 0 on a CPU without FMA. An
// interruption by another process makes a batch slower, never faster, so that the best one is the limit.
extern "C" __attribute__((visibility("default"))) double scankit_multiply_adds(double seconds) {
  const MultiplyAdd unit = widest();
  if (unit.turns == nullptr) return 0;
  const double each = double{kChains} * kTurns * unit.lanes, begin = now();
  double best = 0;
  for (double before = begin, after = 0; before - begin < seconds; before = after) {
    constexpr int kCalls = 8;
    for (int i = 0; i < kCalls; ++i) passed_on = unit.turns(passed_on);
    after = now();
    const double rate = kCalls * each / (after - before);
    best = rate > best ? rate : best;
  }
  return best;
}
