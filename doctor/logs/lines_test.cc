// SPDX-License-Identifier: Apache-2.0
#include "doctor/logs/lines.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace scankit::logs {
namespace {

std::vector<std::pair<std::uint64_t, std::string>> cut(std::string_view text) {
  std::vector<std::pair<std::uint64_t, std::string>> lines;
  LineCutter cutter([&](std::uint64_t line, const std::string& piece) { lines.emplace_back(line, piece); });
  for (const char c : text) cutter.feed({&c, 1});
  cutter.finish();
  return lines;
}

TEST(Lines, AreCleanedOfEscapesAndControlBytes) {
  EXPECT_EQ(clean_line("\x1b[1;31merror:\x1b[0m no\tway  "), "error: no way");
  EXPECT_EQ(clean_line("\x1b]0;a title\aImportError"), "ImportError");
  EXPECT_EQ(clean_line("a\x08\x07"
                       "b\x7f"),
            "ab");
  EXPECT_EQ(clean_line("\xff\xfe\x80x"), "???x");
  EXPECT_EQ(clean_line("\xc2\x9b"
                       "31m"),
            "31m");
  EXPECT_EQ(clean_line("\xe6\xb2\xa1\xe6\x9c\x89"), "\xe6\xb2\xa1\xe6\x9c\x89");
  EXPECT_EQ(clean_line("\x1b[31"), "31");
}

TEST(Lines, EndAtNewlinesAndCarriageReturns) {
  const auto lines = cut("one\r\ntwo\n\n 10%\r 20%\rlast");
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0], std::pair(std::uint64_t{1}, std::string("one")));
  EXPECT_EQ(lines[1].first, 2u);
  EXPECT_EQ(lines[4], std::pair(std::uint64_t{4}, std::string("last")));
}

TEST(Lines, OfUtf16AreRead) {
  const std::string wide(
      "\xff\xfe"
      "E\0r\0r\0\r\0\n\0x\0",
      14);
  const auto lines = cut(wide);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].second, "??Err");
  EXPECT_EQ(lines[1].second, "x");
}

TEST(Lines, ThatNeverEndComeInBoundedPiecesAndLoseNothing) {
  std::string endless(100'000, 'x');
  endless.replace(LineCutter::kLongest - 5, 6, "NEEDLE");
  std::size_t found = 0;
  for (const auto& [line, piece] : cut(endless)) {
    EXPECT_LE(piece.size(), LineCutter::kLongest);
    EXPECT_EQ(line, 1u);
    found += piece.find("NEEDLE") != std::string::npos ? 1 : 0;
  }
  EXPECT_GE(found, 1u);
}

}  // namespace
}  // namespace scankit::logs
