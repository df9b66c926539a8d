// SPDX-License-Identifier: Apache-2.0
#include "validate/judge/number.h"

#include <cmath>

namespace scankit::validate {
namespace {

// Rounds to `bits` of significand with the smallest exponent of a subnormal's last place and the largest
// finite value.
double round_to(double value, int bits, int last_place_min, double largest) {
  if (value == 0 || !std::isfinite(value)) return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  const int place = exponent - bits > last_place_min ? exponent - bits : last_place_min;
  const double result = std::ldexp(std::nearbyint(std::ldexp(value, -place)), place);
  return std::fabs(result) > largest ? std::copysign(INFINITY, value) : result;
}

}  // namespace

std::string_view dtype_name(Dtype dtype) {
  static constexpr std::string_view kNames[] = {"fp32", "fp16", "bf16", "c64"};
  return kNames[static_cast<int>(dtype)];
}

double rounded(Dtype dtype, double value) {
  const double single =
      static_cast<double>(static_cast<float>(value));  // torch converts double to half this way too
  if (dtype == Dtype::F32 || dtype == Dtype::C64) return single;
  if (dtype == Dtype::F16) return round_to(single, 11, -24, 65504.0);
  return round_to(single, 8, -133, 0x1.fep127);
}

}  // namespace scankit::validate
