// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>
#include <vector>

#include "builder/compile.h"

// What scankit carries inside itself, so that the one file can do everything.
namespace scankit {

inline constexpr const char* kModuleName = "selective_scan_cuda";

std::string_view shipped_host_module();    // selective_scan_cuda.abi3.so without device images
std::string_view shipped_device_source();  // one text without any #include
std::vector<Unit> shipped_units();         // kernels/selective_scan/cuda/units.def

}  // namespace scankit
