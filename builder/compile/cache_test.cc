// SPDX-License-Identifier: Apache-2.0
#include "builder/compile/cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "doctor/base/files.h"

namespace scankit::compile {
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
  cache.store(key_of("-a"), "slot", bytes);
  EXPECT_TRUE(cache.take_notes().empty());
  EXPECT_EQ(cache.find(key_of("-a")), bytes);
  EXPECT_FALSE(cache.find(key_of("-b")));
}

TEST(Cache, RemembersTheLastInputsOfASlot) {
  auto folder = TemporaryDirectory::create("cache");
  const Cache cache(folder->path());
  EXPECT_FALSE(cache.last_inputs("slot"));
  cache.store(key_of("-a"), "slot", "x");
  cache.store(key_of("-b"), "slot", "y");
  EXPECT_EQ(cache.last_inputs("slot"), key_of("-b").text());
  cache.remember(key_of("-a"), "slot");  // a hit
  EXPECT_EQ(cache.last_inputs("slot"), key_of("-a").text());
}

TEST(Cache, NeverReturnsDamagedBytes) {
  auto folder = TemporaryDirectory::create("cache");
  const Cache cache(folder->path());
  for (const auto& damage : {std::string("flip"), std::string("cut"), std::string("empty")}) {
    cache.store(key_of("-a"), "slot", "payload");
    const std::string path = only_entry(folder->path());
    std::string bytes = *read_whole_file(path);
    if (damage == "flip") bytes.back() = static_cast<char>(bytes.back() ^ 1);
    if (damage == "cut") bytes.pop_back();
    if (damage == "empty") bytes.clear();
    std::ofstream(path, std::ios::binary) << bytes;
    const auto found = cache.look_up(key_of("-a"));
    EXPECT_FALSE(found.bytes) << damage;
    EXPECT_EQ(found.damage, path) << damage;
    EXPECT_FALSE(std::filesystem::exists(path)) << damage;
  }
}

TEST(Cache, RefusesAnEntryUnderAnotherOnesName) {
  auto folder = TemporaryDirectory::create("cache");
  const Cache cache(folder->path());
  cache.store(key_of("-a"), "slot", "of a");
  const std::string bytes = *read_whole_file(only_entry(folder->path()));
  std::filesystem::remove_all(folder->path() + "/objects");
  cache.store(key_of("-b"), "slot", "of b");
  ASSERT_TRUE(write_file_atomically(only_entry(folder->path()), bytes));
  EXPECT_FALSE(cache.find(key_of("-b")));
}

TEST(Cache, RemovesWhatWasNotUsedForLongest) {
  auto folder = TemporaryDirectory::create("cache");
  const std::string bytes(100000, 'x');
  constexpr std::uint64_t kLimit = 350000;
  for (const char* name : {"-a", "-b", "-c"}) Cache(folder->path(), kLimit).store(key_of(name), name, bytes);
  const auto age = [&](const char* name, int hours) {
    const std::string digest = key_of(name).digest();
    std::filesystem::last_write_time(
        folder->path() + "/objects/" + digest.substr(0, 2) + "/" + digest.substr(2),
        std::filesystem::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  age("-a", 3);
  age("-b", 2);
  age("-c", 1);
  const Cache running(folder->path(), kLimit);
  EXPECT_TRUE(running.find(key_of("-a")));  // oldest by time of writing, and used again
  running.store(key_of("-d"), "-d", bytes);
  running.trim();
  EXPECT_TRUE(running.take_notes().empty());
  const Cache later(folder->path(), kLimit);
  EXPECT_TRUE(later.find(key_of("-a")));
  EXPECT_FALSE(later.find(key_of("-b")));
  EXPECT_TRUE(later.find(key_of("-c")));
  EXPECT_TRUE(later.find(key_of("-d")));
}

TEST(Cache, NeverRemovesWhatTheRunningBuildNeeds) {
  auto folder = TemporaryDirectory::create("cache");
  const Cache cache(folder->path(), 1000);
  cache.store(key_of("-a"), "a", std::string(100000, 'x'));
  cache.store(key_of("-b"), "b", std::string(100000, 'y'));
  cache.trim();
  EXPECT_TRUE(cache.find(key_of("-a")));
  EXPECT_TRUE(cache.find(key_of("-b")));
  const auto notes = cache.take_notes();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("--cache-size"), std::string::npos);
}

TEST(Cache, RemovesWhatAKilledBuilderLeftOnceItIsOld) {
  auto folder = TemporaryDirectory::create("cache");
  const Cache cache(folder->path());
  cache.store(key_of("-a"), "a", "x");
  const std::string fresh = only_entry(folder->path()) + ".abcdef", old = fresh + "g", future = fresh + "h";
  for (const std::string& file : {fresh, old, future}) ASSERT_TRUE(write_file_atomically(file, "half"));
  const auto now = std::filesystem::file_time_type::clock::now();
  std::filesystem::last_write_time(old, now - std::chrono::hours(2));
  std::filesystem::last_write_time(future, now + std::chrono::hours(20'000));  // a clock was put back since
  cache.trim();
  EXPECT_TRUE(std::filesystem::exists(fresh));  // somebody may be writing it
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_FALSE(std::filesystem::exists(future));
}

TEST(Cache, KeepsNothingWhereNothingMayBeKept) {
  auto folder = TemporaryDirectory::create("cache");
  const Cache cache(folder->path(), 0);
  cache.store(key_of("-a"), "a", "x");
  cache.trim();
  EXPECT_TRUE(std::filesystem::is_empty(folder->path()));
}

TEST(Cache, SaysOnceThatItTakesNothing) {
  const Cache cache("/proc/nowhere");
  cache.store(key_of("-a"), "a", "x");
  cache.store(key_of("-b"), "b", "x");
  const auto notes = cache.take_notes();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("/proc/nowhere"), std::string::npos) << notes[0];
}

// Any other user's hands: the hash in an entry was written by the same ones.
TEST(Cache, BelievesOnlyWhatNobodyElseCanHaveWritten) {
  auto folder = TemporaryDirectory::create("cache");
  const Cache cache(folder->path());
  cache.store(key_of("-a"), "slot", "payload");
  const std::string path = only_entry(folder->path()), moved = folder->path() + "/moved";
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  EXPECT_FALSE(cache.find(key_of("-a")));
  ASSERT_EQ(cache.take_notes().size(), 1u);
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  EXPECT_TRUE(cache.find(key_of("-a")));
  ASSERT_TRUE(::rename(path.c_str(), moved.c_str()) == 0 && ::symlink(moved.c_str(), path.c_str()) == 0);
  EXPECT_FALSE(cache.find(key_of("-a")));
  ASSERT_TRUE(::rename(moved.c_str(), path.c_str()) == 0);
  const std::string slot = folder->path() + "/last/" + sha256_hex("slot").substr(0, 32);
  EXPECT_TRUE(cache.last_inputs("slot"));
  ASSERT_EQ(::chmod(slot.c_str(), 0666), 0);
  EXPECT_FALSE(cache.last_inputs("slot"));
  if (::geteuid() != 0) return;  // only root can give a file away
  ASSERT_EQ(::chown(path.c_str(), 4711, 4711), 0);
  EXPECT_FALSE(cache.find(key_of("-a")));
  cache.store(key_of("-a"), "slot", "payload");  // what is compiled again replaces it
  EXPECT_TRUE(cache.find(key_of("-a")));
}

// As by XDG_CACHE_HOME on a shared disk. Said once, and nothing is read or written.
TEST(Cache, AFolderThatOthersCanWriteToIsNotUsed) {
  auto folder = TemporaryDirectory::create("cache");
  EXPECT_EQ(usable_cache_folder(folder->path()).value_or("?"), folder->path());
  EXPECT_EQ(usable_cache_folder(folder->path() + "/new").value_or("?"), folder->path() + "/new");
  ASSERT_EQ(::chmod(folder->path().c_str(), 01777), 0);
  testing::internal::CaptureStderr();
  EXPECT_EQ(usable_cache_folder(folder->path()).value_or("?"), "");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("the cache " + folder->path() + " is not used"), std::string::npos) << said;
  EXPECT_NE(said.find("chmod go-w " + folder->path()), std::string::npos) << said;
  const Cache none("");
  none.store(key_of("-a"), "slot", "payload");
  none.remember(key_of("-a"), "slot");
  EXPECT_FALSE(none.find(key_of("-a")) || none.last_inputs("slot"));
  EXPECT_TRUE(none.take_notes().empty());
}

TEST(Cache, MakesItsFoldersForItsOwnerAlone) {
  auto folder = TemporaryDirectory::create("cache");
  const Cache cache(folder->path() + "/new");
  const mode_t before = ::umask(0);
  cache.store(key_of("-a"), "slot", "x");
  ::umask(before);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder->path())) {
    const auto others = std::filesystem::perms::group_write | std::filesystem::perms::others_write;
    EXPECT_EQ(entry.status().permissions() & others, std::filesystem::perms::none) << entry.path();
  }
}

TEST(CacheSize, IsANumberOfBytes) {
  EXPECT_EQ(parse_cache_size("").value(), kDefaultCacheSize);
  EXPECT_EQ(parse_cache_size("0").value(), 0u);
  EXPECT_EQ(parse_cache_size("1000").value(), 1000u);
  EXPECT_EQ(parse_cache_size("2G").value(), 2ull << 30);
  for (const char* bad : {"M", "-1", "1X", "1 G", "99999999999999", "999999999999T", "1.5G"})
    EXPECT_FALSE(parse_cache_size(bad)) << bad;
}

}  // namespace
}  // namespace scankit::compile
