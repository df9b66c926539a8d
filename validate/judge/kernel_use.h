// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string_view>

#include "validate/run/harness_files.h"
#include "validate/run/run.h"

namespace scankit::validate {

// How many wavefronts of shared memory bank conflicts add to the least possible number, as a share, for
// our kernel of that symbol, whatever its dtype. Predicted from the kernel's own code when scankit was
// built (kernels/selective_scan/cuda/bank_conflicts.cc). Nothing for a kernel without shared memory, or
// of another build.
std::optional<double> predicted_bank_conflicts(std::string_view symbol);

// The kernels that scankit's module launches for the timed passes on the GPU, with block and grid, each
// once. Empty without `gpu_facts`. The same planner as in the module computes them here, without a GPU.
std::vector<KernelUse> launched_kernels(const Validation& seen);

// Fills `seen.kernels`: registers, memory and threads from the module's cubins, and blocks of a
// multiprocessor from the driver, which a child asks. Leaves it empty for other modules. What cannot be
// asked becomes a note, since it says nothing about the module.
void look_at_kernels(const ValidateRequest& request, const Harness& harness, Validation& seen);

}  // namespace scankit::validate
