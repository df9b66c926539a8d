// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "kernels/selective_scan/params.h"
#include "validate/run/children.h"
#include "validate/run/run.h"

namespace scankit::validate {

// Recorded measurements of ncu: kernels/selective_scan/cuda/bank_conflicts.def.
struct BankRow {
  int capability;
  selective_scan::DType dtype;
  std::string_view symbol;
  double wavefronts, least;
};
std::span<const BankRow> recorded_bank_rows();

// How many wavefronts of shared memory bank conflicts add to the least possible number, as a share, for
// our kernel of that symbol. Nothing where no row is of this GPU's capability, dtype and kernel.
std::optional<double> bank_conflicts_in(std::span<const BankRow> rows, int capability,
                                        selective_scan::DType dtype, std::string_view symbol);

// The kernels that scankit's module launches for the timed passes on the GPU, with block and grid, each
// once. Empty without `gpu_facts`. The same planner as in the module computes them here, without a GPU.
std::vector<KernelUse> launched_kernels(const Validation& seen);

// Fills `seen.kernels`: registers, memory and threads from the module's cubins, and blocks of a
// multiprocessor from the driver, which a child asks. Leaves it empty for other modules. What cannot be
// asked becomes a note, since it says nothing about the module.
void look_at_kernels(const ValidateRequest& request, const Harness& harness, Validation& seen);

}  // namespace scankit::validate
