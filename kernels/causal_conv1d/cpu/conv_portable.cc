// SPDX-License-Identifier: Apache-2.0
#include "kernels/causal_conv1d/cpu/instruction_set.h"

namespace scankit::causal_conv1d {
static_assert(kLanes == 4, "compiled with other flags than kernels/CMakeLists.txt gives");

const KernelSet& portable_kernels() {
  static constexpr KernelSet set = kernel_set();
  return set;
}

}  // namespace scankit::causal_conv1d
