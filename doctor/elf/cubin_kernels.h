// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/result.h"

namespace scankit {

// What one kernel of a cubin takes, as its compiler wrote it down.
struct CubinKernel {
  std::string name;
  unsigned registers = 0;            // a thread's
  unsigned stack_bytes = 0;          // a thread's: local arrays, and registers that were spilled
  unsigned static_shared_bytes = 0;  // a block's, with the KiB that the system keeps from sm_90 on
  unsigned most_threads = 0;         // of a block, by __launch_bounds__; 0: not bounded
};
// Sorted by name. `cubin` is an unpacked image (fatbin_payload). The sections are NVIDIA's and undocumented:
// doctor/elf/README.md has the table. Used by validate/judge/kernel_use.cc and scankit_list_images.
Result<std::vector<CubinKernel>> cubin_kernels(std::string_view cubin);

}  // namespace scankit
