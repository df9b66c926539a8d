// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/arguments.h"

// Arithmetic of the device code: own 16-bit conversions (cuda_fp16.h is not at hand under NVRTC) and the
// elementary functions. All sums and states are fp32.

namespace scankit::selective_scan {

#define SCANKIT_DEVICE __device__ __forceinline__

inline constexpr float kLog2E = 1.4426950408889634f;
inline constexpr float kLn2 = 0.6931471805599453f;

#ifdef SCANKIT_EMULATED
SCANKIT_DEVICE void keep(Index) {}
SCANKIT_DEVICE float exp2_approx(float x) { return exp2f(x); }
SCANKIT_DEVICE float rcp_approx(float x) { return 1.0f / x; }
#else
// The compiler holds the number from here on, and does not compute it again. No pointers: it would no longer
// know that they are global memory's.
SCANKIT_DEVICE void keep(Index& number) { asm volatile("" : "+l"(number)); }
SCANKIT_DEVICE void keep(int& number) { asm volatile("" : "+r"(number)); }
SCANKIT_DEVICE float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
SCANKIT_DEVICE float rcp_approx(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#endif

SCANKIT_DEVICE float sigmoid(float x) { return rcp_approx(1.0f + exp2_approx(-kLog2E * x)); }

// log1p(e), 0 <= e <= 1, as e times a polynomial: exact within 2.1e-7 of its value, otherwise within 1.5e-6,
// enough for 16-bit inputs (minimax of the relative error; with the rounding of fp32). No special function:
// that unit is the scarce one.
template <bool kExact>
SCANKIT_DEVICE float log1p_unit(float e) {
  float p;
  if constexpr (kExact) {
    p = fmaf(e, 0.0052326880395412445f, -0.029505213722586632f);
    p = fmaf(e, p, 0.07822591066360474f);
    p = fmaf(e, p, -0.13663242757320404f);
    p = fmaf(e, p, 0.19106005132198334f);
    p = fmaf(e, p, -0.2484298199415207f);
    p = fmaf(e, p, 0.3331909775733948f);
    p = fmaf(e, p, -0.4999949336051941f);
    p = fmaf(e, p, 0.9999999403953552f);
  } else {
    p = fmaf(e, 0.014141007326543331f, -0.06640174984931946f);
    p = fmaf(e, p, 0.14922381937503815f);
    p = fmaf(e, p, -0.23503857851028442f);
    p = fmaf(e, p, 0.3310944736003876f);
    p = fmaf(e, p, -0.4998696446418762f);
    p = fmaf(e, p, 0.9999987483024597f);
  }
  return e * p;
}
// Equals the contract's form with its switch at 20: log1p(exp(-20)) is under half an ulp of 20.
template <bool kExact>
SCANKIT_DEVICE float softplus(float x) {
  return fmaxf(x, 0.0f) + log1p_unit<kExact>(exp2_approx(-kLog2E * fabsf(x)));
}

// Element types: kWords 32-bit words hold eight elements.
struct Float {
  static constexpr int kSize = 4, kWords = 8;
  static constexpr bool kExact = true;
  SCANKIT_DEVICE static void unpack(const unsigned (&w)[8], float (&v)[8]) {
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = __uint_as_float(w[i]);
  }
  SCANKIT_DEVICE static void pack(const float (&v)[8], unsigned (&w)[8]) {
#pragma unroll
    for (int i = 0; i < 8; ++i) w[i] = __float_as_uint(v[i]);
  }
};

#ifndef SCANKIT_EMULATED  // whose compiler does not know the assembly
struct Half {
  static constexpr int kSize = 2, kWords = 4;
  static constexpr bool kExact = false;
  SCANKIT_DEVICE static void unpack(const unsigned (&w)[4], float (&v)[8]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      asm("{.reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}"
          : "=f"(v[2 * i]), "=f"(v[2 * i + 1])
          : "r"(w[i]));
    }
  }
  SCANKIT_DEVICE static void pack(const float (&v)[8], unsigned (&w)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      asm("{.reg .b16 l, h; cvt.rn.f16.f32 l, %1; cvt.rn.f16.f32 h, %2; mov.b32 %0, {l, h};}"
          : "=r"(w[i])
          : "f"(v[2 * i]), "f"(v[2 * i + 1]));
    }
  }
};
#endif

struct BFloat {
  static constexpr int kSize = 2, kWords = 4;
  static constexpr bool kExact = false;
  SCANKIT_DEVICE static void unpack(const unsigned (&w)[4], float (&v)[8]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      v[2 * i] = __uint_as_float(w[i] << 16);
      v[2 * i + 1] = __uint_as_float(w[i] & 0xffff0000u);
    }
  }
  SCANKIT_DEVICE static unsigned round(float x) {
    const unsigned u = __float_as_uint(x);
    if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fffu;
    return (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  }
  SCANKIT_DEVICE static void pack(const float (&v)[8], unsigned (&w)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
      asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(w[i]) : "f"(v[2 * i]), "f"(v[2 * i + 1]));
#else
      w[i] = round(v[2 * i]) | round(v[2 * i + 1]) << 16;
#endif
    }
  }
};

// Up to four sums, of which `left` are wanted.
SCANKIT_DEVICE void put_quad(float* to, float4 sum, Index left) {
  const float v[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (i < left) to[i] = v[i];
}
template <class T>
SCANKIT_DEVICE void put_pairs(unsigned short* to, float4 sum, Index left) {
  const float v[8] = {sum.x, sum.y, sum.z, sum.w};
  unsigned w[T::kWords];
  T::pack(v, w);
  if (left >= 4 && (reinterpret_cast<unsigned long long>(to) & 7) == 0) {
    *reinterpret_cast<uint2*>(to) = make_uint2(w[0], w[1]);
    return;
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (i < left) to[i] = static_cast<unsigned short>(w[i / 2] >> (16 * (i & 1)));
}

}  // namespace scankit::selective_scan
