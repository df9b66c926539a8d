// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string_view>

#include "validate/run/harness_files.h"
#include "validate/run/run.h"

namespace scankit::validate {

// Of our kernel of that symbol, whatever its dtype: the share of shared memory's wavefronts that bank
// conflicts add to the least there could be. Predicted from the kernel's own code when scankit was built
// (kernels/selective_scan/cuda/bank_conflicts.cc). Nothing for a kernel without shared memory, or of another
// build.
std::optional<double> predicted_bank_conflicts(std::string_view symbol);

// The kernels that our module launches for the GPU's timed passes, each
// with its block and grid, once. Empty without `gpu_facts`. The planner is
// the module's own; what differs is only what the cubin and the driver say.
std::vector<KernelUse> launched_kernels(const Validation& seen);

// Fills `seen.kernels`: registers, memory and threads from the module's cubins, blocks of a multiprocessor
// from the driver (a child). Nothing for a module that is not ours. What cannot be asked is a note: it is no
// judgement of the module.
void look_at_kernels(const ValidateRequest& request, const Harness& harness, Validation& seen);

}  // namespace scankit::validate
