// SPDX-License-Identifier: Apache-2.0
#include "doctor/torch_abi/atlas.h"

#include <gtest/gtest.h>

namespace scankit {
namespace {

std::string small_atlas() {
  std::vector<AtlasName> names;
  for (int i = 100; i < 400; ++i)
    names.push_back({"_ZN2at4f" + std::to_string(i) + "Ev", {i % 2 == 0 ? 3u : 6u, 0}});
  return write_atlas(
      {{"2.1", false, 4, " cp310 "}, {"2.2", false, 4, " cp310 "}, {"2.3", true, 11, " cp311 "}}, names);
}

TEST(Atlas, FindsWhatWasWrittenAndNothingElse) {
  const auto atlas = Atlas::parse(small_atlas());
  ASSERT_TRUE(atlas) << atlas.error().message;
  EXPECT_EQ(atlas->size(), 300u);
  EXPECT_EQ(atlas->releases()[2].minor, "2.3");
  EXPECT_TRUE(atlas->releases()[2].new_strings);
  EXPECT_EQ(atlas->releases()[2].python_tags, " cp311 ");
  for (int i = 100; i < 400; ++i) {
    const auto set = atlas->find("_ZN2at4f" + std::to_string(i) + "Ev");
    ASSERT_TRUE(set) << i;
    EXPECT_EQ(set->exact, i % 2 == 0 ? 3u : 6u);
  }
  for (const char* other : {"", "_", "_ZN2at4f100E", "_ZN2at4f100Evv", "_ZN2at4f163", "zzz"})
    EXPECT_FALSE(atlas->find(other)) << other;
  EXPECT_EQ(atlas->with_prefix("_ZN2at4f39", 99).size(), 10u);
  EXPECT_EQ(atlas->with_prefix("_ZN2at4f", 5).front(), "_ZN2at4f100Ev");
}

TEST(Atlas, AnEmptyOneAnswersNothing) {
  const auto atlas = Atlas::parse(write_atlas({}, {}));
  ASSERT_TRUE(atlas);
  EXPECT_FALSE(atlas->find("_ZN2at1fEv"));
  EXPECT_FALSE(Atlas().find("_ZN2at1fEv"));
  EXPECT_EQ(Atlas().find_api("_ZN2at1fESs"), 0u);
}

TEST(Atlas, EveryTruncationIsRefused) {
  const std::string bytes = small_atlas();
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(Atlas::parse(std::string_view(bytes).substr(0, length))) << length;
  EXPECT_FALSE(Atlas::parse(bytes + "x"));
}

// A flipped byte may leave a valid atlas with other contents; it must never be read out of bounds (run under
// ASan).
TEST(Atlas, FlippedBytesAreRefusedOrStayInBounds) {
  const std::string bytes = small_atlas();
  for (std::size_t at = 0; at < bytes.size(); ++at)
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      const auto atlas = Atlas::parse(damaged);
      if (!atlas) continue;
      atlas->find("_ZN2at4f250Ev");
      atlas->with_prefix("_ZN2at", 1000);
    }
}

TEST(Atlas, NamesOutOfOrderAreRefused) {
  EXPECT_FALSE(Atlas::parse(write_atlas({{"2.1", false, 4, ""}}, {{"b", {1, 0}}, {"a", {1, 0}}})));
  EXPECT_FALSE(Atlas::parse(write_atlas({{"2.1", false, 4, ""}}, {{"a", {1, 0}}, {"a", {1, 0}}})));
}

TEST(Atlas, FindsAnApiWithTheOtherString) {
  const auto atlas = Atlas::parse(write_atlas({{"2.1", false, 4, ""}}, {{"_ZN2at1fESs", {1, 0}}}));
  ASSERT_TRUE(atlas);
  const std::string modern = "_ZN2at1fENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";
  EXPECT_FALSE(atlas->find(modern));
  EXPECT_EQ(atlas->find_api(modern), 1u);
  EXPECT_EQ(atlas->find_api("_ZN2at1gESs"), 0u);
}

TEST(Atlas, TheBuiltInOneIsWhole) {
  const Atlas& atlas = Atlas::built_in();
  ASSERT_GE(atlas.releases().size(), 19u);
  EXPECT_EQ(atlas.releases().front().minor, "1.11");
  EXPECT_GT(atlas.size(), 80000u);
  // c10::Error's constructor takes a string: every release has it, in one of the two forms.
  const auto all = (std::uint64_t{1} << atlas.releases().size()) - 1;
  const auto set = atlas.find("_ZN3c105ErrorC1ENS_14SourceLocationESs");
  ASSERT_TRUE(set);
  EXPECT_EQ(set->api(), all);
  EXPECT_NE(set->exact, all);
  EXPECT_FALSE(atlas.find("_ZTHN3c104impl26raw_local_dispatch_key_setE"));
}

}  // namespace
}  // namespace scankit
