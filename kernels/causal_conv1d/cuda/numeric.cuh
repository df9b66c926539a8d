// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/causal_conv1d/cuda/arguments.h"

// Elements to and from fp32 (cuda_fp16.h is not at hand under NVRTC). All arithmetic is fp32.
namespace scankit::causal_conv1d {

#define SCANKIT_DEVICE __device__ __forceinline__

// kPiece elements are 16 bytes, four words; kEdge of its words hold its last three elements.
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

// Two elements a word; Type has widen_pair and narrow_pair.
template <class Type>
struct Pairs {
  using Bits = unsigned short;
  using Pair = unsigned;
  static constexpr int kSize = 2, kPiece = 8, kEdge = 2;
  SCANKIT_DEVICE static void unpack(const unsigned (&w)[4], float* v) {
#pragma unroll
    for (int i = 0; i < 4; ++i) Type::widen_pair(w[i], v[2 * i], v[2 * i + 1]);
  }
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

#ifdef SCANKIT_EMULATED                        // whose compiler does not know the assembly
inline float widen_half(unsigned short bits);  // the test's
inline unsigned short narrow_half(float x);
SCANKIT_DEVICE float exp2_approx(float x) { return exp2f(x); }
SCANKIT_DEVICE float rcp_approx(float x) { return 1.0f / x; }
#else
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
    asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(w) : "f"(low), "f"(high));
    return w;
#else
    return narrow_half(low) | static_cast<unsigned>(narrow_half(high)) << 16;
#endif
  }
};

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

SCANKIT_DEVICE float sigmoid(float x) { return rcp_approx(1.0f + exp2_approx(-1.4426950408889634f * x)); }

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

SCANKIT_DEVICE float get_weight(DType dtype, const void* data, Index at) {
  if (dtype == DType::F32) return static_cast<const float*>(data)[at];
  const unsigned short bits = static_cast<const unsigned short*>(data)[at];
  return dtype == DType::F16 ? Half::widen(bits) : BFloat::widen(bits);
}

}  // namespace scankit::causal_conv1d
