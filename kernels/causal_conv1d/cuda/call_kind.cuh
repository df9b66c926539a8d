// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/causal_conv1d/cuda/forward.cuh"

namespace scankit::causal_conv1d {

// What code is compiled for: the call that Mamba's training makes, or any. The taps that a narrow filter
// lacks are not used, not even times 0: an input may be infinite.
template <bool kUsual>
struct CallKind {
  SCANKIT_DEVICE static bool reaches(const Common& c, int back) { return kUsual || back < c.width; }
  SCANKIT_DEVICE static bool silu(const Common& c) { return kUsual || c.silu; }
  SCANKIT_DEVICE static bool states(bool any) { return !kUsual && any; }
};
SCANKIT_DEVICE bool is_usual(const Common& c, bool states) {
  return c.width == kMaxWidth && c.silu && !states;
}

// dout to dy.
SCANKIT_DEVICE float through_silu(float dout, float y) {
  const float s = sigmoid(y);
  return dout * (s * fmaf(y, 1.0f - s, 1.0f));
}

}  // namespace scankit::causal_conv1d
