// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "doctor/base/text.h"
#include "doctor/report/escape.h"

namespace scankit::report {
namespace {

TEST(Plain, ShowsTerminalEscapesInsteadOfObeyingThem) {
  EXPECT_EQ(plain("a\x1b[31mb\x07", false), "a\\x1b[31mb\\x07");
  EXPECT_EQ(plain("C1: \xC2\x9B"
                  "31m",
                  false),
            "C1: \\xc2\\x9b31m");
  EXPECT_EQ(plain("\xE2\x80\xAEgnp.so", false), "\\xe2\\x80\\xaegnp.so");  // right-to-left override
  EXPECT_EQ(plain("two\nlines\tand\rmore", false), "two lines and\\x0dmore");
}

TEST(Plain, KeepsWellFormedUtf8AndEscapesTheRest) {
  EXPECT_EQ(plain("\xC3\xA9\xE2\x9C\x93\xF0\x9F\x98\x80", false), "\xC3\xA9\xE2\x9C\x93\xF0\x9F\x98\x80");
  EXPECT_EQ(plain("\xFF\xC0\xAF\xED\xA0\x80", false),
            "\\xff\\xc0\\xaf\\xed\\xa0\\x80");  // overlong, surrogate
  EXPECT_EQ(plain("cut \xE2\x9C", false), "cut \\xe2\\x9c");
  EXPECT_EQ(plain("\xC3\xA9", true), "\\xc3\\xa9");
}

TEST(ShellQuoted, IsReadBackAsOneWord) {
  EXPECT_EQ(shell_quoted("/home/u/.venv/bin/python"), "/home/u/.venv/bin/python");
  EXPECT_EQ(shell_quoted("/my env/bin/python"), "'/my env/bin/python'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted(""), "''");
}

// A file called like this must not give orders to the runner of a pipeline.
TEST(Plain, GivesNoCommandsToCiRunners) {
  EXPECT_EQ(plain("##[set-output name=x;]v.so", false), "#\\x23[set-output name=x;]v.so");
  EXPECT_EQ(plain("/a/###[group]", false), "/a/##\\x23[group]");
  EXPECT_EQ(plain("x ##vso[task.setvariable variable=a]b", false),
            "x #\\x23vso[task.setvariable variable=a]b");
  EXPECT_EQ(plain("##teamcity[x]", false), "#\\x23teamcity[x]");
  EXPECT_EQ(plain("::error::x", false), ":\\x3aerror::x");
  EXPECT_EQ(plain("a\n  ::stop-commands::x", false), "a   :\\x3astop-commands::x");
  // What else has these signs is left alone.
  for (const char* same :
       {"## [link]", "c10::Error::what", "a[1] #[2]", "http://[::1]:8080", "x86:: y", "##"})
    EXPECT_EQ(plain(same, false), same);
}

}  // namespace
}  // namespace scankit::report
