// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace scankit {

// Whether the nvcc of a CUDA release ("12.4") compiles for an architecture ("90"); nothing where the table
// does not say.
std::optional<bool> nvcc_knows_arch(std::string_view release, std::string_view arch);

}  // namespace scankit
