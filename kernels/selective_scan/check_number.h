// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/selective_scan/params.h"

// For checks of the kernels: the three dtypes by arithmetic on doubles, without an instruction that a
// processor may lack.
namespace scankit::selective_scan {

inline std::uint32_t encode_half(double value) {
  const std::uint32_t sign = std::signbit(value) ? 0x8000u : 0u;
  const double x = std::fabs(value);
  if (std::isnan(value)) return 0x7e00u;
  if (x >= 65520.0) return sign | 0x7c00u;
  if (x < std::ldexp(1.0, -14)) return sign | static_cast<std::uint32_t>(std::nearbyint(std::ldexp(x, 24)));
  const int exponent = std::ilogb(x);
  const auto mantissa = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(x, 10 - exponent)));
  return sign | ((static_cast<std::uint32_t>(exponent + 15) << 10) + (mantissa - 1024));
}
inline double decode_half(std::uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31), mantissa = static_cast<int>(bits & 1023);
  const double sign = bits >> 15 ? -1.0 : 1.0;
  if (exponent == 31) return mantissa != 0 ? std::nan("") : sign * HUGE_VAL;
  return sign * (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25));
}

// Rounded to nearest even.
inline std::uint32_t encode(double value, DType dtype) {
  if (dtype == DType::F16) return encode_half(value);
  const auto f = static_cast<float>(value);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &f, sizeof bits);
  if (dtype == DType::F32) return bits;
  return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}
inline double decode(std::uint32_t bits, DType dtype) {
  if (dtype == DType::F16) return decode_half(bits);
  if (dtype == DType::BF16) bits <<= 16;
  float f = 0;
  std::memcpy(&f, &bits, sizeof f);
  return f;
}
inline double rounded(double value, DType dtype) { return decode(encode(value, dtype), dtype); }
inline std::size_t size_of(DType dtype) { return dtype == DType::F32 ? 4 : 2; }

}  // namespace scankit::selective_scan
