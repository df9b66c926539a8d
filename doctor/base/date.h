// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Days and times in UTC, so that two machines mean the same moment. Seconds since 1970 throughout.
namespace scankit {

// "2027-01-31", of a day that exists: its begin.
std::optional<std::int64_t> parse_date(std::string_view text);
bool is_date(std::string_view text);
// The same, or with a time of day: "2027-01-31 14:05", "2027-01-31T14:05:59", with a "Z" or " UTC" behind it.
std::optional<std::int64_t> parse_time(std::string_view text);

std::string date_utc(std::int64_t seconds);  // "2027-01-31"
std::string time_utc(std::int64_t seconds);  // "2027-01-31 14:05:59 UTC"
std::int64_t seconds_now();

}  // namespace scankit
