// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "builder/module/target.h"

namespace scankit {

// Universal: the shipped host module. Torch: one linked with the environment's own libtorch (torch_flavor/).
enum class Flavor { Universal, Torch };

// One piece of device code: one unit (kernels/*/cuda/units.def) for one target.
struct BuiltCode {
  std::string unit;
  Target target;
  std::string bytes;   // a bare cubin, or PTX text with its closing NUL, as NVRTC gives it
  std::string sha256;  // of bytes
  bool from_cache = false;
  std::string compiler;  // the CUDA release that made it: "12.9", "13.0.88"
};

}  // namespace scankit
