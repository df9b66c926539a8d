// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/columns.h"

#include <gtest/gtest.h>

#include "doctor/base/text.h"

namespace scankit {
namespace {

TEST(Columns, AreCountedAsATerminalDoes) {
  EXPECT_EQ(columns_of(""), 0u);
  EXPECT_EQ(columns_of("aéb"), 3u);
  EXPECT_EQ(columns_of("中文"), 4u);
  EXPECT_EQ(columns_of("（，。：；）「」、"), 18u);
  EXPECT_EQ(columns_of("“…”—·✓✗"), 7u);  // ambiguous ones are narrow
  EXPECT_EQ(columns_of("e\u0301"), 1u);
  EXPECT_EQ(columns_of("\u0e01\u0e31\u200b"), 1u);  // a Thai vowel above, a space without width
  EXPECT_EQ(columns_of("한국어"), 6u);
  EXPECT_EQ(columns_of("\u1112\u1161\u11ab"), 2u);  // one syllable from three letters
  EXPECT_EQ(columns_of("𠀀😀"), 4u);
  EXPECT_EQ(columns_of("\xe4\xb8"), 2u);  // no letter: a column for each byte
}

TEST(Columns, TheCutIsBetweenLetters) {
  EXPECT_EQ(cut_to("中文", 3), "中");
  EXPECT_EQ(cut_to("中文", 4), "中文");
  EXPECT_EQ(cut_to("中文", 1), "");
  EXPECT_EQ(cut_to("导入 selective_scan_cuda 失败", 15), "导入 selecti...");
  EXPECT_EQ(cut_to("正在检查扩展模块的符号", 14), "正在检查扩...");
  EXPECT_EQ(cut_to("正在检查扩展模块的符号", 15), "正在检查扩展...");
  EXPECT_EQ(cut_to("abcdefghijklmnopqrstuvwxyz", 15), "abcdefghijkl...");
  EXPECT_EQ(cut_to("e\u0301e\u0301", 1), "e\u0301");
  EXPECT_EQ(cut_to("whole", 5), "whole");
}

TEST(Columns, AreFilledByColumns) {
  EXPECT_EQ(in_column("结果", 8), "结果    ");
  EXPECT_EQ(in_column("ab", 8), "ab      ");
  EXPECT_EQ(in_column("结果结果", 8), "结果结果 ");
}

TEST(Wrapped, BreaksAtSpacesAndIndents) {
  EXPECT_EQ(wrapped("one two three", 0, 2, 8), "one two\n  three");
  EXPECT_EQ(wrapped("one two three", 5, 2, 8), "one\n  two\n  three");
  EXPECT_EQ(wrapped("a /very/long/path b", 0, 0, 8), "a\n/very/long/path\nb");
  EXPECT_EQ(wrapped("e\u0301\u0301 fg", 0, 0, 4), "e\u0301\u0301 fg");
  EXPECT_EQ(wrapped("", 0, 0, 8), "");
  EXPECT_EQ(wrapped("two  spaces", 0, 0, 20), "two  spaces");
}

TEST(Wrapped, BreaksBesideEastAsianLetters) {
  EXPECT_EQ(wrapped("缺少的符号", 0, 0, 6), "缺少的\n符号");
  EXPECT_EQ(wrapped("缺少的符号", 0, 2, 5), "缺少\n  的\n  符\n  号");
  EXPECT_EQ(wrapped("用 --json 输出", 0, 0, 9), "用 --json\n输出");
  EXPECT_EQ(wrapped("文件file.so损坏", 0, 0, 8), "文件\nfile.so\n损坏");
}

TEST(Wrapped, PunctuationStaysWhereItBelongs) {
  EXPECT_EQ(wrapped("缺少符号，重新构建", 0, 0, 8), "缺少符\n号，重新\n构建");
  EXPECT_EQ(wrapped("缺少（符号）", 0, 0, 6), "缺少\n（符\n号）");
  EXPECT_EQ(wrapped("显示[默认：无]", 0, 0, 5), "显示\n[默\n认：\n无]");
  EXPECT_EQ(wrapped("完成）。", 0, 0, 4), "完\n成）。");
}

// Whatever the width: nothing is lost, no line is too wide that could be broken, and no line begins with what closes.
TEST(Wrapped, HoldsForEveryWidth) {
  const std::string text =
      "导入时找不到符号，因为扩展（selective_scan_cuda）是为另一个 torch 版本构建的：“请重新构建”；运行 "
      "scankit fix。";
  for (std::size_t width = 6; width < 130; ++width) {
    std::string joined;
    const std::string page = wrapped(text, 0, 0, width);
    for (const std::string_view line : lines_of(page)) {
      EXPECT_TRUE(is_utf8(line));
      EXPECT_TRUE(columns_of(line) <= std::max<std::size_t>(width, 23)) << width << ": " << line;
      for (const char* closing : {"，", "。", "：", "；", "）", "”"})
        EXPECT_FALSE(line.starts_with(closing)) << line;
      for (const char* opening : {"（", "“"}) EXPECT_FALSE(line.ends_with(opening)) << line;
      joined += line;
    }
    std::string without = text;
    std::erase(without, ' ');
    std::erase(joined, ' ');
    EXPECT_EQ(joined, without);
  }
}

}  // namespace
}  // namespace scankit
