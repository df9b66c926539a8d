// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "doctor/torch_abi/infer_release.h"
#include "doctor/torch_abi/symbol_index.h"

namespace scankit::torch_abi {
namespace {

TEST(HeaderLine, IsWhatFollowsTheLastInclude) {
  const std::string mark(kAssertionMark);
  EXPECT_EQ(header_line(mark + "/v/lib/torch/include/c10/core/TensorImpl.h\":1723, please report"),
            "c10/core/TensorImpl.h:1723");
  EXPECT_EQ(
      header_line(mark + "/t/include/torch/csrc/api/include/torch/detail/TensorDataContainer.h\":32, x"),
      "torch/detail/TensorDataContainer.h:32");
}

TEST(HeaderLine, OfOtherFilesThereIsNone) {
  const std::string mark(kAssertionMark);
  EXPECT_EQ(header_line(mark + "/src/c10/core/TensorImpl.cpp\":17, please"), "");    // a tree of sources
  EXPECT_EQ(header_line(mark + "/opt/include/mine/thing.h\":17, please"), "");       // another project's
  EXPECT_EQ(header_line(mark + "/t/include/c10/core/TensorImpl.h\":, please"), "");  // no number
  EXPECT_EQ(header_line(mark + "/t/include/c10/core/TensorImpl.h"), "");             // cut
  EXPECT_EQ(header_line("isString() " + mark + "/t/include/c10/core/Scalar.h\":1,"), "");
}

TEST(AssertionLines, ReachOverTheWholeInvocation) {
  EXPECT_EQ(assertion_lines("a\nTORCH_INTERNAL_ASSERT(x);\nAT_ASSERT (\n  f(1),\n  \"no\");\n"),
            (std::set<unsigned>{2, 3, 4, 5}));
  EXPECT_EQ(assertion_lines("// ASSERT is a word\nif (ASSERTIVE) f(x);\n"), std::set<unsigned>{});
  EXPECT_EQ(assertion_lines("ASSERT(x"), std::set<unsigned>{1});  // never closed
}

std::vector<IndexedRelease> three() {
  return {{"2.4", false, 4, ""}, {"2.5", false, 4, ""}, {"2.6", false, 4, ""}};
}
// A name that all three export, one that 2.4 lacks; lines of 2.4 and 2.5, of 2.5, of 2.6.
SymbolIndex names() {
  return SymbolIndex::parse(
             write_symbol_index(three(), {{"_ZN2at10always_newEv", {7, 0}}, {"_ZN2at6newishEv", {6, 0}}}))
      .value();
}
SymbolIndex lines() {
  return SymbolIndex::parse(
             write_symbol_index(three(),
                                {{"ATen/A.h:10", {3, 0}}, {"ATen/A.h:20", {2, 0}}, {"ATen/A.h:30", {4, 0}}}))
      .value();
}

TEST(ReleasesWithLines, AllMustFitAndUnknownHeadersSayNothing) {
  EXPECT_EQ(releases_with_lines(lines(), {}), ~std::uint64_t{0});
  EXPECT_EQ(releases_with_lines(lines(), {"ATen/B.h:10"}), ~std::uint64_t{0});
  EXPECT_EQ(releases_with_lines(lines(), {"ATen/A.h:10"}), 3u);
  EXPECT_EQ(releases_with_lines(lines(), {"ATen/A.h:10", "ATen/A.h:20", "ATen/B.h:10"}), 2u);
  EXPECT_EQ(releases_with_lines(lines(), {"ATen/A.h:10", "ATen/A.h:30"}), 0u);
  EXPECT_EQ(releases_with_lines(lines(), {"ATen/A.h:10", "ATen/A.h:11"}), 0u);
}

BuiltFor date(const std::vector<std::string>& undefined, const std::vector<std::string>& header_lines) {
  BuiltForInput input;
  input.file = "x.so";
  for (const std::string& name : undefined) input.undefined.push_back({.name = name});
  input.header_lines = header_lines;
  return date_file(names(), input, lines());
}

TEST(NarrowByHeaders, NamesTheLineThatBounds) {
  const BuiltFor built_for = date({"_ZN2at10always_newEv"}, {"ATen/A.h:10", "ATen/A.h:20"});
  EXPECT_EQ(built_for_words(built_for), "2.5");
  ASSERT_EQ(built_for.evidence.size(), 2u);
  EXPECT_EQ(english(built_for.evidence[0]).rfind("ATen/A.h:20: the headers of torch 2.5 ", 0), 0u)
      << built_for.evidence[0];
  EXPECT_EQ(english(built_for.evidence[1]).rfind("ATen/A.h:10: ", 0), 0u) << built_for.evidence[1];
}

TEST(NarrowByHeaders, WhatContradictsTheNamesIsToldAndNotUsed) {
  const BuiltFor built_for = date({"_ZN2at10always_newEv"}, {"ATen/A.h:10", "ATen/A.h:30"});
  EXPECT_EQ(built_for.releases.size(), 3u);
  ASSERT_EQ(built_for.evidence.size(), 1u);
  EXPECT_NE(english(built_for.evidence[0]).find("no known release has together:"), std::string::npos);
}

TEST(NarrowByHeaders, BuiltInTablesHaveTheSameReleases) {
  const auto minors = [](const SymbolIndex& symbol_index) {
    std::vector<std::string> all;
    for (const IndexedRelease& release : symbol_index.releases()) all.push_back(release.minor);
    return all;
  };
  EXPECT_EQ(minors(SymbolIndex::built_in()), minors(SymbolIndex::header_lines()));
  EXPECT_GT(SymbolIndex::header_lines().size(), 5000u);
}

}  // namespace
}  // namespace scankit::torch_abi
