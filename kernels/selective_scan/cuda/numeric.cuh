// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/common/next_launch.cuh"
#include "kernels/selective_scan/cuda/arguments.h"

// Arithmetic of the device code: 16-bit conversions of our own (NVRTC has no cuda_fp16.h) and the elementary
// functions. All sums and states are fp32; 16-bit values are widened when they are read and rounded once, to
// nearest even, when a result is written. The template parameter T of all kernels is one of the element types
// below: Float, Half or BFloat.

namespace scankit::selective_scan {

// Every function but the kernels. Always inlined: arrays are passed by reference, and of a real call they
// would be in local memory, which is global memory.
#define SCANKIT_DEVICE __device__ __forceinline__

// e^x is 2^(x log2 e), which is what the hardware has. A has kLog2E in it from where it is loaded (load_A),
// so that a step spends no multiplication on it; a gradient with respect to dt that was made with such an A
// takes kLn2 at the end, dA does not.
inline constexpr float kLog2E = 1.4426950408889634f;
inline constexpr float kLn2 = 0.6931471805599453f;

// SCANKIT_EMULATED: a host compiler builds this text for emulator.h. It knows no PTX, so each asm has a
// plain C++ twin here. The twins are exact where the hardware approximates: a bound that a test holds on
// the CPU says nothing about the approximation's own error.
#ifdef SCANKIT_EMULATED
SCANKIT_DEVICE void keep(Index) {}
SCANKIT_DEVICE float exp2_approx(float x) { return exp2f(x); }
SCANKIT_DEVICE float rcp_approx(float x) { return 1.0f / x; }
#else
// Makes the compiler keep the number in a register from here on: without it, nvcc prefers to compute
// addresses and limits again at each use. Take numbers only, never pointers: a pointer from an asm has
// lost its address space, and loads through it become generic ones.
SCANKIT_DEVICE void keep(Index& number) { asm volatile("" : "+l"(number)); }
SCANKIT_DEVICE void keep(int& number) { asm volatile("" : "+r"(number)); }
// The special function unit. ftz flushes subnormal inputs and results to zero, which a decay may as
// well be.
SCANKIT_DEVICE float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// Infinity for 0 and 0 for infinity, both with the sign of x (PTX ISA, rcp): sigmoid relies on it.
SCANKIT_DEVICE float rcp_approx(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#endif

// 1 / (1 + e^-x), without a branch: for a large negative x the exponential is infinite and its
// reciprocal 0, for a large positive one it vanishes. NaN stays NaN.
SCANKIT_DEVICE float sigmoid(float x) { return rcp_approx(1.0f + exp2_approx(-kLog2E * x)); }

// log1p(e) for 0 <= e <= 1, as e times a polynomial in e (Horner's scheme, the highest coefficient first).
// The relative error is at most 2.1e-7 if kExact, else 1.5e-6, which is enough for 16-bit inputs; both are
// minimax fits of the relative error and include fp32's rounding. e is a factor, so a tiny dt keeps all
// its digits. No lg2: the special function unit is the scarce one.
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
// max(x, 0) + log1p(e^-|x|), which overflows nowhere. It equals the contract's form with its switch at
// x = 20: log1p(e^-20) is under half an ulp of 20. fmaxf drops a NaN; the second term keeps it.
// The contract is torch's softplus with threshold 20 (params.h). kExact: T::kExact of the input's type, or
// true where an error of dt would show in 16-bit results, too (general_forward.cuh).
template <bool kExact>
SCANKIT_DEVICE float softplus(float x) {
  return fmaxf(x, 0.0f) + log1p_unit<kExact>(exp2_approx(-kLog2E * fabsf(x)));
}

// The element types. Eight elements, the kernels' unit of work (a piece), are kWords 32-bit words; of two
// 16-bit elements in a word, the earlier one is in the low half. kExact selects log1p_unit's polynomial.
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
// IEEE half precision. pack turns what is too large for it into infinity.
struct Half {
  static constexpr int kSize = 2, kWords = 4;
  static constexpr bool kExact = false;
  // Exact: every half is an fp32 number.
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

// bfloat16 is the upper half of an fp32 number, so unpacking is a shift or a mask.
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
  // Rounds to nearest even in integers, for GPUs before sm_80 and for the emulator. NaN is a case of its
  // own: the addition could carry its payload into the sign, or leave infinity's bits.
  SCANKIT_DEVICE static unsigned round(float x) {
    const unsigned u = __float_as_uint(x);
    if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fffu;
    return (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  }
  SCANKIT_DEVICE static void pack(const float (&v)[8], unsigned (&w)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      // The instruction's first source goes to the upper half: hence %2 before %1.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
      asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(w[i]) : "f"(v[2 * i]), "f"(v[2 * i + 1]));
#else
      w[i] = round(v[2 * i]) | round(v[2 * i + 1]) << 16;
#endif
    }
  }
};

// Writes the first `left` of four sums; `left` may be more than four, or negative.
SCANKIT_DEVICE void put_quad(float* to, float4 sum, Index left) {
  const float v[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (i < left) to[i] = v[i];
}
// The same, rounded to the 16-bit type T. As one 8-byte store where the place allows it; rows of
// an odd length start anywhere.
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
