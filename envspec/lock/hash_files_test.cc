// SPDX-License-Identifier: Apache-2.0
#include "envspec/lock/hash_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <thread>

#include "doctor/base/files.h"

namespace scankit::envspec {
namespace {

// Counts how many files were opened: what the cache knows is not read.
class CountingHost : public Host {
 public:
  CountingHost() : real_(make_real_host()) {}
  Result<std::string> read_file(const std::string& path, std::size_t limit) const override {
    return real_->read_file(path, limit);
  }
  Result<std::unique_ptr<ByteSource>> open(const std::string& path) const override {
    ++opened;
    if (on_open) on_open();
    return real_->open(path);
  }
  Result<std::vector<DirEntry>> list(const std::string& path) const override { return real_->list(path); }
  Result<FileInfo> stat(const std::string& path) const override {
    auto info = real_->stat(path);
    if (info && settled) info->mtime_ns = info->ctime_ns = 1'000'000'000;
    return info;
  }
  Result<FileInfo> lstat(const std::string& path) const override { return real_->lstat(path); }
  Result<std::string> readlink(const std::string& path) const override { return real_->readlink(path); }
  Result<std::string> realpath(const std::string& path) const override { return real_->realpath(path); }
  std::optional<std::string> env(std::string_view name) const override { return real_->env(name); }
  bool is_live() const override { return true; }

  mutable int opened = 0;
  bool settled = true;  // the times of long ago
  std::function<void()> on_open;

 private:
  std::unique_ptr<Host> real_;
};

class HashFiles : public testing::Test {
 protected:
  HashFiles() : folder_(*TemporaryDirectory::create("hashes")) {}
  std::string file(const std::string& name, const std::string& text) {
    const std::string path = folder_.path() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  std::string cache() const { return folder_.path() + "/cache"; }
  HashedFile hash(const std::string& path) {
    HashCache known(cache());
    return hash_files(host_, {path}, known)[0];
  }
  TemporaryDirectory folder_;
  CountingHost host_;
};

TEST_F(HashFiles, ReadsAnUnchangedFileOnce) {
  const std::string path = file("a", "one");
  EXPECT_EQ(*hash(path).sha256, sha256_hex("one"));
  EXPECT_EQ(*hash(path).sha256, sha256_hex("one"));
  EXPECT_EQ(host_.opened, 1);
}

TEST_F(HashFiles, DoesNotTrustTheTimesOfAFileThatJustChanged) {
  host_.settled = false;
  const std::string path = file("a", "one");
  EXPECT_EQ(*hash(path).sha256, sha256_hex("one"));
  std::ofstream(path) << "two";  // the same size, maybe the same tick of the clock
  EXPECT_EQ(*hash(path).sha256, sha256_hex("two"));
}

TEST_F(HashFiles, SeesANewInodeOfTheSameSizeAndTimes) {
  const std::string path = file("a", "one"), other = file("b", "two");
  EXPECT_EQ(*hash(path).sha256, sha256_hex("one"));
  ASSERT_EQ(::rename(other.c_str(), path.c_str()), 0);
  EXPECT_EQ(*hash(path).sha256, sha256_hex("two"));
}

TEST_F(HashFiles, NamesAFileThatChangesMeanwhile) {
  host_.settled = false;
  const std::string path = file("a", std::string(3 << 20, 'x'));
  host_.on_open = [&] {
    const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND);
    ASSERT_EQ(::write(fd, "y", 1), 1);
    ::close(fd);
  };
  const HashedFile hashed = hash(path);
  ASSERT_FALSE(hashed.sha256);
  EXPECT_EQ(hashed.sha256.error().code, Errc::Conflict);
  EXPECT_EQ(english(hashed.sha256.error().message), path + " changed while it was read");
  host_.on_open = [&] { ASSERT_EQ(::truncate(path.c_str(), 10), 0); };
  EXPECT_EQ(hash(path).sha256.error().code, Errc::Conflict);
  host_.on_open = {};
  EXPECT_EQ(hash(folder_.path() + "/none").sha256.error().code, Errc::NotFound);
}

TEST_F(HashFiles, BelievesNoCacheThatIsCutOrEdited) {
  const std::string path = file("a", "one");
  EXPECT_TRUE(hash(path).sha256);
  const std::string stored = cache() + "/file-hashes";
  const std::string good = *read_whole_file(stored);
  std::string bad = good;
  bad[bad.size() - 2] = bad[bad.size() - 2] == 'a' ? 'b' : 'a';
  for (const std::string& text :
       {bad, good.substr(0, good.size() / 2), std::string(), std::string("junk\n")}) {
    std::ofstream(stored, std::ios::trunc) << text;
    EXPECT_EQ(*hash(path).sha256, sha256_hex("one"));
  }
  EXPECT_EQ(host_.opened, 5);
}

TEST_F(HashFiles, WorksWhereTheCacheCannotBeWritten) {
  const std::string path = file("a", "one");
  HashCache nowhere("/proc/none"), none("");
  EXPECT_EQ(*hash_files(host_, {path}, nowhere)[0].sha256, sha256_hex("one"));
  EXPECT_EQ(*hash_files(host_, {path}, none)[0].sha256, sha256_hex("one"));
}

TEST_F(HashFiles, KeepsTheAnswersOfManyWritersAtOnce) {
  const std::string text = sha256_hex("x");
  std::vector<std::thread> threads;
  for (std::uint64_t id = 0; id < 8; ++id)
    threads.emplace_back([&, id] {
      HashCache mine(cache());
      for (std::uint64_t i = 0; i < 50; ++i) mine.add({.size = 1, .device = id, .inode = i}, text);
      mine.save();
    });
  for (std::thread& thread : threads) thread.join();
  HashCache all(cache());
  for (std::uint64_t id = 0; id < 8; ++id)
    for (std::uint64_t i = 0; i < 50; ++i)
      ASSERT_EQ(all.find({.size = 1, .device = id, .inode = i}), text) << id << " " << i;
}

// A hash that somebody else can have written would call an exchanged file unchanged.
TEST_F(HashFiles, BelievesOnlyWhatNobodyElseCanHaveWritten) {
  const FileInfo info{.size = 1, .inode = 7};
  const std::string text = sha256_hex("x"), stored = cache() + "/file-hashes";
  {
    HashCache mine(cache());
    mine.add(info, text);
    mine.save();
  }
  EXPECT_EQ(HashCache(cache()).find(info), text);
  ASSERT_EQ(::chmod(stored.c_str(), 0666), 0);
  EXPECT_EQ(HashCache(cache()).find(info), std::nullopt);
  // The lock is no way to another file.
  const std::string lock = stored + ".lock", victim = folder_.path() + "/victim";
  ::unlink(lock.c_str());
  ASSERT_EQ(::symlink(victim.c_str(), lock.c_str()), 0);
  HashCache mine(cache());
  mine.add(info, text);
  mine.save();
  EXPECT_NE(::access(victim.c_str(), F_OK), 0);
}

TEST_F(HashFiles, IsBounded) {
  {
    HashCache many(cache());
    for (std::uint64_t i = 0; i < HashCache::kLimit + 500; ++i)
      many.add({.size = i, .inode = i}, sha256_hex("x"));
    many.save();
  }
  const std::string text = *read_whole_file(cache() + "/file-hashes");
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(text, '\n')), HashCache::kLimit + 1);
}

}  // namespace
}  // namespace scankit::envspec
