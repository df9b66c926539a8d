// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "doctor/model/json.h"
#include "doctor/model/snapshot.h"

namespace scankit {
namespace {

std::string problem_of(const std::string& text, const JsonLimits& limits = {}) {
  const auto json = parse_bounded_json(text, limits);
  return json ? "" : english(json.error().message);
}

std::string repeated(const std::string& piece, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += piece;
  return text;
}

TEST(BoundedJson, RefusesDepthAndNumbers) {
  EXPECT_EQ(problem_of(R"({"a": [1, {"b": null}]})"), "");
  EXPECT_EQ(problem_of(repeated("[", 100)), "it nests deeper than 32 levels");
  EXPECT_EQ(problem_of("[" + repeated("{},", 10) + "0]", {.objects = 9}), "it has more than 9 objects");
  EXPECT_EQ(problem_of("[" + repeated("\"\",", 10) + "0]", {.values = 9}), "it has more than 9 values");
  EXPECT_EQ(problem_of(repeated("[", 60u << 20)), "it nests deeper than 32 levels");
}

TEST(BoundedJson, RefusesNumbersThatNoFieldHas) {
  for (const char* text : {"[2.4e88]", "[-1.5]", "[1e0]", "[99999999999999999999]"})
    EXPECT_EQ(problem_of(text), "it has a number with a fraction, an exponent or more than 64 bits") << text;
  EXPECT_EQ(problem_of("[-9223372036854775808, 18446744073709551615]"), "");
}

TEST(WholeNumber, IsOneThatFits) {
  const auto numbers = nlohmann::json::parse("[7, -7, 2.4e88, 1.0, 4294967296, \"7\", null]");
  EXPECT_EQ(whole_number<unsigned>(numbers[0]), 7u);
  EXPECT_EQ(whole_number<int>(numbers[1]), -7);
  EXPECT_EQ(whole_number<std::size_t>(numbers[4]), std::size_t{1} << 32);
  for (const std::size_t i : {1, 2, 3, 4, 5, 6})
    EXPECT_THROW(whole_number<unsigned>(numbers[i]), nlohmann::json::exception) << i;
}

TEST(BoundedJson, SaysWhereInPlainWords) {
  EXPECT_EQ(problem_of("{\n  \"a\": x}"), "it is not valid JSON at line 2, column 8");
  EXPECT_EQ(problem_of(""), "it is not valid JSON at line 1, column 1");
  EXPECT_EQ(plain_json_problem("[json.exception.type_error.302] type must be string, but is number"),
            "type must be string, but is number");
}

TEST(PlainJson, EscapesWhatActsOnTerminalsAndNothingElse) {
  const nlohmann::json json = {{"path",
                                "a\xC2\x9B"
                                "2J\xE2\x80\xAE\xE2\x81\xA6\x7F gr\xC3\xBC\xC3\x9F \xE2\x82\xAC"}};
  const std::string text = plain_json(json.dump());
  EXPECT_EQ(text, "{\"path\":\"a\\u009b2J\\u202e\\u2066\\u007f gr\xC3\xBC\xC3\x9F \xE2\x82\xAC\"}");
  EXPECT_EQ(nlohmann::json::parse(text), json);
}

TEST(BoundedJson, SnapshotsNameTheFieldAndNotTheLibrary) {
  for (const char* text : {R"({"schema": 1, "gpus": {"value": 7}})", R"({"schema": 1, "gpus": 7})"}) {
    const auto snapshot = snapshot_from_json(text);
    ASSERT_FALSE(snapshot);
    EXPECT_NE(english(snapshot.error().message).find("its field \"gpus\": "), std::string::npos)
        << english(snapshot.error().message);
    EXPECT_EQ(english(snapshot.error().message).find("json.exception"), std::string::npos)
        << english(snapshot.error().message);
  }
  EXPECT_FALSE(snapshot_from_json(R"({"schema": 99999999999999999999})"));
}

}  // namespace
}  // namespace scankit
