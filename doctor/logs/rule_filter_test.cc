// SPDX-License-Identifier: Apache-2.0
#include "doctor/logs/rule_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "doctor/knowledge/faults.h"
#include "doctor/logs/lines.h"

namespace scankit::logs {
namespace {

std::set<int> found_in(const LiteralFinder& finder, std::string_view line) {
  LiteralFinder::Marks marks;
  std::vector<int> places;
  finder.find(line, marks, places);
  std::set<int> found;
  for (const int place : places) found.insert(finder.ends_at(place).begin(), finder.ends_at(place).end());
  return found;
}

std::vector<int> match(const RuleFilter& filter, const std::string& line) {
  RuleFilter::Memo memo;
  const auto first = filter.match(line, memo);
  // The same of what is remembered, and of what is compiled for many such lines.
  for (int again = 0; again < 600; ++again) EXPECT_EQ(filter.match(line, memo), first);
  return first;
}

TEST(Literals, AreFoundWhereTheyOverlapAndInEitherCase) {
  const LiteralFinder finder({"undefined symbol", "symbol", "bol: ", "ImportError", ".so"});
  EXPECT_EQ(found_in(finder, "a.so: undefined symbol: x"), (std::set<int>{0, 1, 2, 4}));
  EXPECT_EQ(found_in(finder, "UNDEFINED SYMBOL"), (std::set<int>{0, 1}));
  EXPECT_EQ(found_in(finder, "undefinedsymbo"), std::set<int>{});
  EXPECT_EQ(found_in(finder, ""), std::set<int>{});
}

TEST(Literals, OfOtherAlphabetsMayBeFoundTooOftenAndAreNeverMissed) {
  const LiteralFinder finder({"\xe6\xb2\xa1\xe6\x9c\x89", "cuda"});
  EXPECT_EQ(found_in(finder, "x\xe6\xb2\xa1\xe6\x9c\x89"), std::set<int>{0});
  EXPECT_EQ(found_in(finder, "x\xe6\xb2 cuda"), std::set<int>{1});
}

TEST(Rules, WithoutAnyLiteralAreTriedOnEveryLine) {
  re2::RE2::Options options;
  const RuleFilter filter({"import (?P<x>\\w+)", "[ab]{2}", "-(?P<x>[lL])z"}, options);
  EXPECT_EQ(match(filter, "import ab"), (std::vector<int>{0, 1}));
  EXPECT_EQ(match(filter, "-lz"), std::vector<int>{2});
  EXPECT_EQ(match(filter, "none of them"), std::vector<int>{});
}

TEST(Rules, OfOneLiteralAreTriedTogetherOnManyLines) {
  re2::RE2::Options options;
  const RuleFilter filter({"error: (?P<x>\\d)$", "(?i)error: (?P<x>[a-z])$", "^error: -$"}, options);
  EXPECT_EQ(match(filter, "error: 1"), std::vector<int>{0});
  EXPECT_EQ(match(filter, "ERROR: X"), std::vector<int>{1});
  EXPECT_EQ(match(filter, "error: -"), std::vector<int>{2});
  EXPECT_EQ(match(filter, "error: ++"), std::vector<int>{});
}

// A log has as many lines of each set as its writer likes, and each compiled set takes memory.
TEST(Rules, OfManyLiteralsAreCompiledForAFewSetsOfLines) {
  std::vector<std::string> patterns, lines;
  for (int i = 0; i < 60; ++i) {
    const std::string word = "word" + std::string(1, static_cast<char>('a' + i / 10)) +
                             std::string(1, static_cast<char>('a' + i % 10));
    for (const char* end : {".*1$", ".*2$", ".*6$"}) patterns.push_back(word + end);
    lines.push_back(word + " 6");
  }
  const RuleFilter filter(patterns, re2::RE2::Options());
  RuleFilter::Memo memo;
  for (int again = 0; again < 600; ++again)
    for (std::size_t i = 0; i < lines.size(); ++i)
      ASSERT_EQ(filter.match(lines[i], memo), std::vector<int>{static_cast<int>(3 * i + 2)});
  const auto compiled =
      std::ranges::count_if(memo.by_places, [](const auto& one) { return one.second.any != nullptr; });
  EXPECT_EQ(compiled, RuleFilter::kMostCompiled);
}

TEST(Rules, WithShortLiteralsAreTriedWhereOneIs) {
  re2::RE2::Options options;
  const RuleFilter filter({"\\w: [^-]*-l ?[xy]", "^\\w+[$#] "}, options);
  EXPECT_EQ(match(filter, "ld: cannot find -lx"), std::vector<int>{0});
  EXPECT_EQ(match(filter, "user$ ls"), std::vector<int>{1});
  EXPECT_EQ(match(filter, "ld: all found"), std::vector<int>{});
}

// Every line that the project has of real logs: whatever a pattern matches by itself, the filter finds.
TEST(Rules, MatchInTheFilterWhatTheyMatchByThemselves) {
  const auto& rules = knowledge::log_rules();
  std::string plain;
  RuleFilter::Memo memo;
  std::size_t lines = 0, matches = 0;
  for (const char* folder : {"/doctor/tests/logs", "/doctor/tests/corpus"})
    for (const auto& file : std::filesystem::directory_iterator(std::string(SCANKIT_SOURCE_DIR) + folder)) {
      std::ifstream stream(file.path());
      for (std::string line; std::getline(stream, line); ++lines) {
        matcher().as_rules_read(clean_line(line), plain);
        std::vector<int> alone;
        for (std::size_t i = 0; i < rules.size(); ++i)
          if (re2::RE2::PartialMatch(plain, matcher().pattern(static_cast<int>(i))))
            alone.push_back(static_cast<int>(i));
        const LineMatch found = matcher().match(plain, memo);
        ASSERT_EQ(found.rules, alone) << plain;
        ASSERT_EQ(found.error, matcher().looks_like_error(plain)) << plain;
        matches += alone.size();
      }
    }
  EXPECT_GT(lines, 10000u);
  EXPECT_GT(matches, 1000u);
}

TEST(Prefixes, OfProgramsThatPassALogOnAreRemoved) {
  const auto read = [](const std::string& text) {
    std::string plain;
    matcher().as_rules_read(text, plain);
    return plain;
  };
  for (const char* prefix :
       {"#12 3.456 ", "[2026-03-01 10:00:00,123] ", "2026-03-01T10:00:00Z ", "10:00:00 | ", "[10:00:00.5] ",
        "ERROR 03-01 10:00:00 [engine.py:12] ", "INFO     | train - ", "0: ", "[1,3]<stderr>: ", "[rank3]: ",
        "(Worker pid=12, ip=1) ", "web-1  | ", "my.service_2 | ", "\xe2\x94\x82 "})
    EXPECT_EQ(read(prefix + std::string("ImportError: x")), "ImportError: x") << prefix;
  EXPECT_EQ(read("web-1  | #3 1.0 \xe2\x80\x98x\xe2\x80\x99 \xe2\x80\x9cy\xe2\x80\x9d \xe2\x82\xac"),
            "'x' \"y\" \xe2\x82\xac");
  EXPECT_EQ(read("\xe2\x80"), "\xe2\x80");
  EXPECT_EQ(read(""), "");
}

}  // namespace
}  // namespace scankit::logs
