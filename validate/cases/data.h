// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "validate/cases/cases.h"

namespace scankit::validate {

// The tensor's elements in logical (row-major) order, rounded to its dtype; real and imaginary part in turn.
// Empty for FillKind::None.
std::vector<double> make_data(const TensorSpec& spec);

}  // namespace scankit::validate
