// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/causal_conv1d/cuda/arguments.h"
#include "kernels/common/next_launch.cuh"

// Elements to and from fp32 (NVRTC has no cuda_fp16.h). All arithmetic and all sums are fp32; a 16-bit
// result is rounded once, to nearest even, where it is written. The template parameter T of all kernels is
// one of the element types below: Float, Half or BFloat.
namespace scankit::causal_conv1d {

// Every function but the kernels. Always inlined: arrays passed to a real call would be in local memory.
#define SCANKIT_DEVICE __device__ __forceinline__

// The element types. A piece, what a lane has of a tile, is kPiece elements in 16 bytes, four words; the
// last kEdge of its words hold its last three elements, which are the next piece's history. Bits: one
// element in memory; Pair: two neighbours.
struct Float {
  using Bits = float;
  using Pair = uint2;  // two elements
  static constexpr int kSize = 4, kPiece = 4, kEdge = 3;
  SCANKIT_DEVICE static float widen(float x) { return x; }
  SCANKIT_DEVICE static float narrow(float x) { return x; }
  SCANKIT_DEVICE static void widen_pair(uint2 w, float& first, float& second) {
    first = __uint_as_float(w.x), second = __uint_as_float(w.y);
  }
  SCANKIT_DEVICE static uint2 narrow_pair(float first, float second) {
    return make_uint2(__float_as_uint(first), __float_as_uint(second));
  }
  SCANKIT_DEVICE static void unpack(const unsigned (&w)[4], float* v) {
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] = __uint_as_float(w[i]);
  }
  SCANKIT_DEVICE static void unpack_edge(const unsigned (&w)[3], float* v) {
#pragma unroll
    for (int i = 0; i < 3; ++i) v[i] = __uint_as_float(w[i]);
  }
  SCANKIT_DEVICE static void pack(const float* v, unsigned (&w)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) w[i] = __float_as_uint(v[i]);
  }
};

// What the 16-bit types share: two elements a word, the earlier one in the low half. Type has widen_pair
// and narrow_pair.
template <class Type>
struct Pairs {
  using Bits = unsigned short;
  using Pair = unsigned;
  static constexpr int kSize = 2, kPiece = 8, kEdge = 2;
  SCANKIT_DEVICE static void unpack(const unsigned (&w)[4], float* v) {
#pragma unroll
    for (int i = 0; i < 4; ++i) Type::widen_pair(w[i], v[2 * i], v[2 * i + 1]);
  }
  // Two words are four elements, the first of which nobody needs.
  SCANKIT_DEVICE static void unpack_edge(const unsigned (&w)[2], float* v) {
    float fourth;
    Type::widen_pair(w[0], fourth, v[0]);
    Type::widen_pair(w[1], v[1], v[2]);
  }
  SCANKIT_DEVICE static void pack(const float* v, unsigned (&w)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) w[i] = Type::narrow_pair(v[2 * i], v[2 * i + 1]);
  }
};

// The emulator's host compiler knows no PTX. Half's conversions are the test's there.
#ifdef SCANKIT_EMULATED
inline float widen_half(unsigned short bits);
inline unsigned short narrow_half(float x);
SCANKIT_DEVICE float exp2_approx(float x) { return exp2f(x); }
SCANKIT_DEVICE float rcp_approx(float x) { return 1.0f / x; }
#else
// IEEE half precision, by PTX: to fp32 exactly, back rounded to nearest even (.rn), too large ones to
// infinity.
SCANKIT_DEVICE float widen_half(unsigned short bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}
SCANKIT_DEVICE unsigned short narrow_half(float x) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
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

// One half is a 16-bit register ("h" of the asm), two are a word.
struct Half : Pairs<Half> {
  SCANKIT_DEVICE static float widen(unsigned short bits) { return widen_half(bits); }
  SCANKIT_DEVICE static unsigned short narrow(float x) { return narrow_half(x); }
  SCANKIT_DEVICE static void widen_pair(unsigned w, float& low, float& high) {
    low = widen_half(static_cast<unsigned short>(w));
    high = widen_half(static_cast<unsigned short>(w >> 16));
  }
  SCANKIT_DEVICE static unsigned narrow_pair(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    unsigned w;
    // The first source goes to the upper half: hence %2 before %1.
    asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(w) : "f"(low), "f"(high));
    return w;
#else
    return narrow_half(low) | static_cast<unsigned>(narrow_half(high)) << 16;
#endif
  }
};

// bfloat16 is the upper half of an fp32 number. Before sm_80 it is rounded in integers, with NaN as a case
// of its own: the addition could carry its payload into the sign.
struct BFloat : Pairs<BFloat> {
  SCANKIT_DEVICE static float widen(unsigned short bits) {
    return __uint_as_float(static_cast<unsigned>(bits) << 16);
  }
  SCANKIT_DEVICE static unsigned short narrow(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    return static_cast<unsigned short>(narrow_pair(x, 0.0f));
#else
    const unsigned u = __float_as_uint(x);
    if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
    return static_cast<unsigned short>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
#endif
  }
  SCANKIT_DEVICE static void widen_pair(unsigned w, float& low, float& high) {
    low = __uint_as_float(w << 16);
    high = __uint_as_float(w & 0xffff0000u);
  }
  SCANKIT_DEVICE static unsigned narrow_pair(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    unsigned w;
    asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(w) : "f"(low), "f"(high));
    return w;
#else
    return narrow(low) | static_cast<unsigned>(narrow(high)) << 16;
#endif
  }
};

// Without a branch: the exponential of a large negative x is infinite, and its reciprocal 0.
SCANKIT_DEVICE float sigmoid(float x) { return rcp_approx(1.0f + exp2_approx(-1.4426950408889634f * x)); }

// One element of a signal (batch, dim, steps), of any strides, widened; put rounds one and writes it.
template <class T>
SCANKIT_DEVICE float get(const Signal& signal, Index batch, Index channel, Index step) {
  const auto* data = static_cast<const typename T::Bits*>(signal.data);
  return T::widen(
      data[batch * signal.batch_stride + channel * signal.dim_stride + step * signal.step_stride]);
}
template <class T>
SCANKIT_DEVICE void put(const SignalOut& signal, Index batch, Index channel, Index step, float x) {
  auto* data = static_cast<typename T::Bits*>(signal.data);
  data[batch * signal.batch_stride + channel * signal.dim_stride + step * signal.step_stride] = T::narrow(x);
}

// Element `at` of weight or bias, whose type is known at run time only.
SCANKIT_DEVICE float get_weight(DType dtype, const void* data, Index at) {
  if (dtype == DType::F32) return static_cast<const float*>(data)[at];
  const unsigned short bits = static_cast<const unsigned short*>(data)[at];
  return dtype == DType::F16 ? Half::widen(bits) : BFloat::widen(bits);
}

}  // namespace scankit::causal_conv1d
