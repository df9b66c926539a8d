// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace scankit {

// A compute capability without its dot, and the name of the chip: "90", "GH100".
struct KnownGpu {
  std::string sm, chip;
};  // "90", "GH100"
// `device_id` is the four hex digits of an NVIDIA device ("2335"). Nothing where the table does not hold it.
std::optional<KnownGpu> known_gpu(std::string_view device_id);

// Whether the nvcc of a CUDA release ("12.4") compiles for an architecture ("90"); nothing where the table
// does not say.
std::optional<bool> nvcc_knows_arch(std::string_view release, std::string_view arch);

}  // namespace scankit
