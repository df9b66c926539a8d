// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/date.h"

#include <fmt/core.h>

#include <charconv>
#include <chrono>

namespace scankit {
namespace {

using std::chrono::days;
using std::chrono::seconds;
using std::chrono::sys_time;

// The two or four digits at `at`; -1 where they are none.
int digits(std::string_view text, std::size_t at, std::size_t length) {
  if (at + length > text.size()) return -1;
  int number = -1;
  const char* end = text.data() + at + length;
  const auto parsed = std::from_chars(text.data() + at, end, number);
  return parsed.ec == std::errc() && parsed.ptr == end ? number : -1;
}

// "14:05" or "14:05:59"; nothing where it is no time of a day.
std::optional<std::int64_t> time_of_day(std::string_view text) {
  if ((text.size() != 5 && text.size() != 8) || text[2] != ':' || (text.size() == 8 && text[5] != ':'))
    return std::nullopt;
  const int hour = digits(text, 0, 2), minute = digits(text, 3, 2);
  const int second = text.size() == 8 ? digits(text, 6, 2) : 0;
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) return std::nullopt;
  return hour * 3600 + minute * 60 + second;
}

}  // namespace

std::optional<std::int64_t> parse_date(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return std::nullopt;
  const int year = digits(text, 0, 4), month = digits(text, 5, 2), day = digits(text, 8, 2);
  if (year < 0 || month < 0 || day < 0) return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day)));
  if (!date.ok()) return std::nullopt;
  return sys_time<seconds>(std::chrono::sys_days(date)).time_since_epoch().count();
}

bool is_date(std::string_view text) { return parse_date(text).has_value(); }

std::optional<std::int64_t> parse_time(std::string_view text) {
  for (const std::string_view zone : {" UTC", "Z"})
    if (text.size() > 10 && text.ends_with(zone)) text.remove_suffix(zone.size());
  const auto day = parse_date(text.substr(0, 10));
  if (!day || text.size() == 10) return day;
  if (text[10] != ' ' && text[10] != 'T') return std::nullopt;
  const auto time = time_of_day(text.substr(11));
  return time ? std::optional(*day + *time) : std::nullopt;
}

std::string date_utc(std::int64_t time) {
  const std::chrono::year_month_day day(std::chrono::floor<days>(sys_time<seconds>(seconds(time))));
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()), static_cast<unsigned>(day.month()),
                     static_cast<unsigned>(day.day()));
}

std::string time_utc(std::int64_t time) {
  const sys_time<seconds> moment{seconds(time)};
  const auto of_day = (moment - std::chrono::floor<days>(moment)).count();
  return fmt::format("{} {:02}:{:02}:{:02} UTC", date_utc(time), of_day / 3600, of_day / 60 % 60,
                     of_day % 60);
}

std::int64_t seconds_now() {
  return std::chrono::floor<seconds>(std::chrono::system_clock::now()).time_since_epoch().count();
}

}  // namespace scankit
