// SPDX-License-Identifier: Apache-2.0
#include "doctor/torch_abi/symbol_index.h"

#include <gtest/gtest.h>

namespace scankit::torch_abi {
namespace {

std::string small_symbol_index() {
  std::vector<IndexedName> names;
  for (int i = 100; i < 400; ++i)
    names.push_back({"_ZN2at4f" + std::to_string(i) + "Ev", {i % 2 == 0 ? 3u : 6u, 0}});
  return write_symbol_index(
      {{"2.1", false, 4, " cp310 "}, {"2.2", false, 4, " cp310 "}, {"2.3", true, 11, " cp311 "}}, names);
}

TEST(SymbolIndex, FindsWhatWasWrittenAndNothingElse) {
  const auto symbol_index = SymbolIndex::parse(small_symbol_index());
  ASSERT_TRUE(symbol_index) << english(symbol_index.error().message);
  EXPECT_EQ(symbol_index->size(), 300u);
  EXPECT_EQ(symbol_index->releases()[2].minor, "2.3");
  EXPECT_TRUE(symbol_index->releases()[2].new_strings);
  EXPECT_EQ(symbol_index->releases()[2].python_tags, " cp311 ");
  for (int i = 100; i < 400; ++i) {
    const auto set = symbol_index->find("_ZN2at4f" + std::to_string(i) + "Ev");
    ASSERT_TRUE(set) << i;
    EXPECT_EQ(set->exact, i % 2 == 0 ? 3u : 6u);
  }
  for (const char* other : {"", "_", "_ZN2at4f100E", "_ZN2at4f100Evv", "_ZN2at4f163", "zzz"})
    EXPECT_FALSE(symbol_index->find(other)) << other;
  EXPECT_EQ(symbol_index->with_prefix("_ZN2at4f39", 99).size(), 10u);
  EXPECT_EQ(symbol_index->with_prefix("_ZN2at4f", 5).front(), "_ZN2at4f100Ev");
}

TEST(SymbolIndex, AnEmptyOneAnswersNothing) {
  const auto symbol_index = SymbolIndex::parse(write_symbol_index({}, {}));
  ASSERT_TRUE(symbol_index);
  EXPECT_FALSE(symbol_index->find("_ZN2at1fEv"));
  EXPECT_FALSE(SymbolIndex().find("_ZN2at1fEv"));
  EXPECT_EQ(SymbolIndex().find_api("_ZN2at1fESs"), 0u);
}

TEST(SymbolIndex, EveryTruncationIsRefused) {
  const std::string bytes = small_symbol_index();
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(SymbolIndex::parse(std::string_view(bytes).substr(0, length))) << length;
  EXPECT_FALSE(SymbolIndex::parse(bytes + "x"));
}

// A flipped byte may leave a valid index with other contents;
// it must never be read out of bounds (run under ASan).
TEST(SymbolIndex, FlippedBytesAreRefusedOrStayInBounds) {
  const std::string bytes = small_symbol_index();
  for (std::size_t at = 0; at < bytes.size(); ++at)
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      const auto symbol_index = SymbolIndex::parse(damaged);
      if (!symbol_index) continue;
      symbol_index->find("_ZN2at4f250Ev");
      symbol_index->with_prefix("_ZN2at", 1000);
    }
}

TEST(SymbolIndex, NamesOutOfOrderAreRefused) {
  EXPECT_FALSE(
      SymbolIndex::parse(write_symbol_index({{"2.1", false, 4, ""}}, {{"b", {1, 0}}, {"a", {1, 0}}})));
  EXPECT_FALSE(
      SymbolIndex::parse(write_symbol_index({{"2.1", false, 4, ""}}, {{"a", {1, 0}}, {"a", {1, 0}}})));
}

TEST(SymbolIndex, FindsAnApiWithTheOtherString) {
  const auto symbol_index =
      SymbolIndex::parse(write_symbol_index({{"2.1", false, 4, ""}}, {{"_ZN2at1fESs", {1, 0}}}));
  ASSERT_TRUE(symbol_index);
  const std::string modern = "_ZN2at1fENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";
  EXPECT_FALSE(symbol_index->find(modern));
  EXPECT_EQ(symbol_index->find_api(modern), 1u);
  EXPECT_EQ(symbol_index->find_api("_ZN2at1gESs"), 0u);
}

TEST(SymbolIndex, TheBuiltInOneIsWhole) {
  const SymbolIndex& symbol_index = SymbolIndex::built_in();
  ASSERT_GE(symbol_index.releases().size(), 19u);
  EXPECT_EQ(symbol_index.releases().front().minor, "1.11");
  EXPECT_GT(symbol_index.size(), 80000u);
  // c10::Error's constructor takes a string: every release has it, in one of the two forms.
  const auto all = (std::uint64_t{1} << symbol_index.releases().size()) - 1;
  const auto set = symbol_index.find("_ZN3c105ErrorC1ENS_14SourceLocationESs");
  ASSERT_TRUE(set);
  EXPECT_EQ(set->api(), all);
  EXPECT_NE(set->exact, all);
  EXPECT_FALSE(symbol_index.find("_ZTHN3c104impl26raw_local_dispatch_key_setE"));
}

}  // namespace
}  // namespace scankit::torch_abi
