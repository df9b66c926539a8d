// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/cpu/instruction_set.h"

namespace scankit::selective_scan {
static_assert(kLanes == 4, "compiled with other flags than kernels/CMakeLists.txt gives");

const KernelSet& portable_kernels() {
  static constexpr KernelSet set = kernel_set("portable");
  return set;
}

}  // namespace scankit::selective_scan
