// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <optional>
#include <string_view>

namespace scankit {

// "20s", "1.5m", "500ms", "2h"; a number alone means seconds. Nothing where it is none of these, zero, or
// more than a day.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

}  // namespace scankit
