// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/causal_conv1d/cuda/forward.cuh"

namespace scankit::causal_conv1d {

// What code is compiled for: the call that Mamba's training makes (width 4, SiLU, no states), or any.
// `reaches`: whether the filter has a tap that many steps back. Taps that a narrow filter lacks are not
// used, not even times 0: an input may be infinite.
template <bool kUsual>
struct CallKind {
  SCANKIT_DEVICE static bool reaches(const Common& c, int back) { return kUsual || back < c.width; }
  SCANKIT_DEVICE static bool silu(const Common& c) { return kUsual || c.silu; }
  SCANKIT_DEVICE static bool states(bool any) { return !kUsual && any; }
};
// takes_usual of vector_cut.h, on the device.
SCANKIT_DEVICE bool is_usual(const Common& c, bool states) {
  return c.width == kMaxWidth && c.silu && !states;
}

// dout silu'(y), the gradient of y before SiLU: silu'(y) = s (1 + y (1 - s)) with s = sigmoid(y).
SCANKIT_DEVICE float through_silu(float dout, float y) {
  const float s = sigmoid(y);
  return dout * (s * fmaf(y, 1.0f - s, 1.0f));
}

}  // namespace scankit::causal_conv1d
