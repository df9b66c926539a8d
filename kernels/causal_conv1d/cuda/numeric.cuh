// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/causal_conv1d/cuda/arguments.h"

// Elements to and from fp32 (cuda_fp16.h is not at hand under NVRTC). All arithmetic is fp32.
namespace scankit::causal_conv1d {

#define SCANKIT_DEVICE __device__ __forceinline__

struct Float {
  using Bits = float;
  SCANKIT_DEVICE static float widen(float x) { return x; }
  SCANKIT_DEVICE static float narrow(float x) { return x; }
};

struct Half {
  using Bits = unsigned short;
  SCANKIT_DEVICE static float widen(unsigned short bits) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
  }
  SCANKIT_DEVICE static unsigned short narrow(float x) {
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
  }
};

struct BFloat {
  using Bits = unsigned short;
  SCANKIT_DEVICE static float widen(unsigned short bits) {
    return __uint_as_float(static_cast<unsigned>(bits) << 16);
  }
  SCANKIT_DEVICE static unsigned short narrow(float x) {
    const unsigned u = __float_as_uint(x);
    if ((u & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
    return static_cast<unsigned short>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
};

SCANKIT_DEVICE float sigmoid(float x) {
  float e, r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(-1.4426950408889634f * x));
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(1.0f + e));
  return r;
}

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
