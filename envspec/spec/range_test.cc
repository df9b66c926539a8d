// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "envspec/spec/fields.h"
#include "envspec/spec/spec.h"

namespace scankit::envspec {
namespace {

bool takes(const std::string& range, const std::string& version) {
  const auto parsed = VersionRange::parse(range);
  EXPECT_TRUE(parsed) << range;
  return parsed && parsed->contains(version).value_or(false);
}

TEST(VersionRange, ComparesNumbersAndNotText) {
  EXPECT_TRUE(takes(">=2.9", "2.11.0+cu130"));
  EXPECT_FALSE(takes(">=2.9,<2.11", "2.11"));
  EXPECT_TRUE(takes(">= 3.11 , < 3.12", "3.11.7"));
  EXPECT_TRUE(takes("<=2.11", "2.11.0"));
  EXPECT_FALSE(takes(">2.11", "2.11.0"));
}

TEST(VersionRange, TakesABareVersionForExactlyThatOne) {
  EXPECT_TRUE(takes("2.11", "2.11.0"));
  EXPECT_FALSE(takes("2.11", "2.11.1"));
  EXPECT_TRUE(takes("2.11.*", "2.11.1"));
  EXPECT_FALSE(takes("2.1.*", "2.11.1"));
  EXPECT_FALSE(takes("!=2.11.*", "2.11.1"));
}

TEST(VersionRange, FollowsTheCompatibleReleaseOfPep440) {
  EXPECT_TRUE(takes("~=2.11", "2.15.1"));
  EXPECT_FALSE(takes("~=2.11", "3.0"));
  EXPECT_TRUE(takes("~=2.11.1", "2.11.4"));
  EXPECT_FALSE(takes("~=2.11.1", "2.12"));
}

TEST(VersionRange, OrdersAPreReleaseBeforeItsRelease) {
  EXPECT_FALSE(takes(">=2.12", "2.12.0a0+git1234"));
  EXPECT_FALSE(takes("<2.12", "2.12.0.dev20260101"));
  EXPECT_TRUE(takes(">=2.12.0a0", "2.12.0a0+git1234"));
  EXPECT_TRUE(takes(">=2.12.0a0", "2.12.0"));
  EXPECT_TRUE(takes("2.12.*", "2.12.0rc1"));
}

TEST(VersionRange, LooksAtTheLocalPartOnlyWhereItIsNamed) {
  EXPECT_TRUE(takes("2.11.0", "2.11.0+cu130"));
  EXPECT_TRUE(takes("2.11.0+cu130", "2.11.0+cu130"));
  EXPECT_FALSE(takes("2.11.0+cu130", "2.11.0+cpu"));
}

TEST(VersionRange, NamesItsOldestVersion) {
  EXPECT_EQ(VersionRange::parse(">=580.65.06,<600")->least(), "580.65.06");
  EXPECT_EQ(VersionRange::parse(">=570,>=580.65.06,!=590.1")->least(), "580.65.06");
  EXPECT_EQ(VersionRange::parse("2.11.*")->least(), "2.11");
  EXPECT_EQ(VersionRange::parse("<600")->least(), "");
}

// An editor refuses by the pattern of the schema what the
// parser refuses, but for lengths and what it cannot express.
TEST(VersionRange, RefusesWhatIsNoneAndTheSchemaToo) {
  const std::regex pattern{std::string(form_pattern(FieldForm::Range))};
  for (const char* good :
       {">=2.11,<3", "2.11.*", "~=2.11.1", "!=2.11.2", "2.11.0+cu130", ">= 3.11 , < 3.12"}) {
    EXPECT_TRUE(VersionRange::parse(good)) << good;
    EXPECT_TRUE(std::regex_match(good, pattern)) << good;
  }
  const std::set<std::string> beyond_a_pattern = {"~=2", ">=2.*", "99999999999999999999"};
  for (const char* bad : {"", ",", ">=", "=2", "=2.11", "latest", ">=2.11,", "2.11,", "2.11 3", "a b", "~=2",
                          ">=2.*", "2.11.*.*", "../x", "2.11/../x", "99999999999999999999"}) {
    const auto parsed = VersionRange::parse(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().code, Errc::Malformed);
    EXPECT_EQ(std::regex_match(bad, pattern), beyond_a_pattern.contains(bad)) << bad;
  }
  EXPECT_FALSE(VersionRange::parse(std::string(100000, '1')));
  EXPECT_EQ(VersionRange::parse("2.11")->contains("unknown"), std::nullopt);
}

}  // namespace
}  // namespace scankit::envspec
