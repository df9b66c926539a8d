// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/causal_conv1d/params.h"

// What each kernel takes, by value. The workspace comes first (driver_plan.h). No standard header: NVRTC has
// none.
namespace scankit::causal_conv1d {

inline constexpr int kThreads = 128;
inline constexpr int kWarps = kThreads / 32;
// Lanes over channels: a thread walks the steps of a segment. Lanes over steps: a warp has a segment of one
// channel.
inline constexpr int kChannelSegment = 64, kStepSegment = 256;
inline constexpr int kReduceChannels = 32, kReduceParts = 8;

struct ForwardArguments {
  void* workspace;
  Forward conv;
  Index segments;
};

// The workspace holds a slab per batch and segment: [width + 1][dim], the last row is dbias.
struct BackwardArguments {
  void* workspace;
  Backward conv;
  Index segments;
};

struct UpdateArguments {
  void* workspace;
  Update conv;
};

}  // namespace scankit::causal_conv1d
