// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/cpu/instruction_set.h"

namespace scankit::selective_scan {
static_assert(kLanes == 8, "compiled with other flags than kernels/CMakeLists.txt gives");

const KernelSet& avx2_kernels() {
  static constexpr KernelSet set = kernel_set("avx2");
  return set;
}

}  // namespace scankit::selective_scan
