// SPDX-License-Identifier: Apache-2.0
#include "builder/cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "doctor/base/files.h"

namespace scankit {
namespace {

Key key_of(const std::string& flags) {
  Key key;
  key.add("source", "abc");
  key.add("flags", flags);
  return key;
}

std::string only_entry(const std::string& folder) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder + "/objects"))
    if (entry.is_regular_file()) return entry.path();
  return "";
}

TEST(Key, KeepsLabelsAndValuesApart) {
  EXPECT_NE(key_of("-I -O2").digest(), key_of("-I-O2").digest());
  Key joined, split;
  joined.add("a", "1\nb: 2");
  split.add("a", "1");
  split.add("b", "2");
  EXPECT_EQ(joined.text(), split.text());
  EXPECT_NE(joined.digest(), split.digest());
}

TEST(Cache, ReturnsWhatWasStored) {
  auto folder = TemporaryDirectory::create("cache");
  const Cache cache(folder->path());
  EXPECT_FALSE(cache.find(key_of("-a")));
  const std::string bytes("a\0b", 3);
  ASSERT_TRUE(cache.store(key_of("-a"), "slot", bytes));
  EXPECT_EQ(cache.find(key_of("-a")), bytes);
  EXPECT_FALSE(cache.find(key_of("-b")));
}

TEST(Cache, NamesTheInputThatChanged) {
  auto folder = TemporaryDirectory::create("cache");
  const Cache cache(folder->path());
  EXPECT_TRUE(cache.why_missed(key_of("-a"), "slot").empty());
  ASSERT_TRUE(cache.store(key_of("-a"), "slot", "x"));
  EXPECT_EQ(cache.why_missed(key_of("-b"), "slot"), std::vector<std::string>{"flags"});
}

TEST(Cache, NeverReturnsDamagedBytes) {
  auto folder = TemporaryDirectory::create("cache");
  const Cache cache(folder->path());
  for (const auto& damage : {std::string("flip"), std::string("cut"), std::string("empty")}) {
    ASSERT_TRUE(cache.store(key_of("-a"), "slot", "payload"));
    const std::string path = only_entry(folder->path());
    std::string bytes = *read_whole_file(path);
    if (damage == "flip") bytes.back() = static_cast<char>(bytes.back() ^ 1);
    if (damage == "cut") bytes.pop_back();
    if (damage == "empty") bytes.clear();
    std::ofstream(path, std::ios::binary) << bytes;
    EXPECT_FALSE(cache.find(key_of("-a"))) << damage;
    EXPECT_FALSE(std::filesystem::exists(path)) << damage;
  }
}

}  // namespace
}  // namespace scankit
