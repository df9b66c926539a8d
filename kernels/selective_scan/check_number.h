// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/selective_scan/params.h"

// For checks of the kernels: the three dtypes by arithmetic on doubles, without an instruction that a
// processor may lack.
namespace scankit::selective_scan {

std::uint32_t encode(double value, DType dtype);  // rounded to nearest even
double decode(std::uint32_t bits, DType dtype);
inline double rounded(double value, DType dtype) { return decode(encode(value, dtype), dtype); }
inline std::size_t size_of(DType dtype) { return dtype == DType::F32 ? 4 : 2; }

}  // namespace scankit::selective_scan
