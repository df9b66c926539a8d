// SPDX-License-Identifier: Apache-2.0
#include "builder/module/release_targets.h"

#include <algorithm>

#include "builder/toolchain/wheel_toolchains.h"

namespace scankit {
namespace {

constexpr unsigned kOldest = 60, kNewestOfOldDialect = 90;

// Up to sm_90 CUDA 12's cubins have the older dialect, which drivers before 580 read; what came later is
// CUDA 13's, the oldest release that makes it, since a driver of 13.0 is then enough.
const char* maker_of(unsigned sm) {
  for (const char* id : {"nvrtc-12.9.86", "nvrtc-13.0.88", "nvrtc-13.5.37"}) {
    const WheelToolchain& toolchain = wheel_toolchain(id);
    if (toolchain.version.starts_with("12.") && sm > kNewestOfOldDialect) continue;
    if (std::find(toolchain.archs.begin(), toolchain.archs.end(), sm) != toolchain.archs.end()) return id;
  }
  return nullptr;
}

std::vector<ReleasePart> make_parts() {
  std::vector<ReleasePart> parts;
  for (const char* id : {"nvrtc-12.9.86", "nvrtc-13.0.88", "nvrtc-13.5.37"}) {
    ReleasePart part{id, {}};
    for (const unsigned sm : wheel_toolchain(id).archs) {
      const char* maker = sm >= kOldest ? maker_of(sm) : nullptr;
      if (maker != nullptr && part.toolchain == maker) part.targets.push_back({false, sm, ""});
    }
    parts.push_back(std::move(part));
  }
  // For GPUs that come later. An old NVRTC: what it writes (ISA 8.1) every driver from 530 on translates.
  // compute_80: all that are older have a cubin, and the kernels round bf16 by an instruction from there on.
  parts.push_back({"nvrtc-12.1.105", {{true, 80, ""}}});
  return parts;
}

}  // namespace

const std::vector<ReleasePart>& release_parts() {
  static const std::vector<ReleasePart> parts = make_parts();
  return parts;
}

}  // namespace scankit
