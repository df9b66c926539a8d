// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string_view>

namespace scankit::validate {

// Of our kernel of that symbol, whatever its dtype: the share of shared memory's wavefronts that bank
// conflicts add to the least there could be. Predicted from the kernel's own code when scankit was built
// (kernels/selective_scan/cuda/bank_conflicts.cc). Nothing for a kernel without shared memory, or of another
// build.
std::optional<double> predicted_bank_conflicts(std::string_view symbol);

}  // namespace scankit::validate
