// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/duration.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace scankit {

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  constexpr double kDay = 86'400'000;
  constexpr std::array<std::pair<std::string_view, double>, 5> kUnits{
      {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}}};
  double number = 0;
  const auto parsed =
      // std::from_chars, because std::strtod obeys the locale. "fixed" refuses exponents and "0x".
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (parsed.ec != std::errc()) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<std::size_t>(parsed.ptr - text.data()));
  // What follows the number must be exactly one of the units. "-1s" and "0.1ms" fail the range check.
  for (const auto& [name, factor] : kUnits) {
    if (unit != name) continue;
    const double length = number * factor;
    if (!(length >= 1 && length <= kDay)) return std::nullopt;  // NaN too
    return std::chrono::milliseconds(std::llround(length));
  }
  return std::nullopt;
}

}  // namespace scankit
