// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/date.h"

#include <gtest/gtest.h>

namespace scankit {
namespace {

TEST(Date, IsOfADayThatExists) {
  EXPECT_EQ(parse_date("1970-01-02"), 86400);
  EXPECT_EQ(parse_date("2026-11-28"), 1795824000);
  EXPECT_TRUE(is_date("2028-02-29"));
  for (const char* bad : {"", "2027-02-29", "2027-13-01", "2027-1-01", "2027/01/01", "2027-01-01T00:00",
                          "x027-01-01", "2027-01--1"})
    EXPECT_FALSE(is_date(bad)) << bad;
}

TEST(Date, MayHaveATimeOfDay) {
  EXPECT_EQ(parse_time("1970-01-01 00:01"), 60);
  EXPECT_EQ(parse_time("1970-01-01T23:59:59Z"), 86399);
  EXPECT_EQ(parse_time("1970-01-02"), 86400);
  for (const char* bad : {"1970-01-01 24:00", "1970-01-01 12:60", "1970-01-01 1:00", "1970-01-01x12:00",
                          "1970-01-01 12:00:0", "1970-01-01 ", "12:00", "1970-01-01 12:00 +01:00", "Z"})
    EXPECT_FALSE(parse_time(bad)) << bad;
  for (const std::int64_t time : {std::int64_t{0}, std::int64_t{1795824059}, std::int64_t{-1}})
    EXPECT_EQ(parse_time(time_utc(time)), time);
  EXPECT_EQ(time_utc(1795824059), "2026-11-28 00:00:59 UTC");
  EXPECT_EQ(date_utc(1795824059), "2026-11-28");
}

}  // namespace
}  // namespace scankit
