// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "builder/compile/cache.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"

namespace scankit {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kLeftOver = 3600 * kSecond;  // no write of one entry takes an hour

struct File {
  std::string path;
  std::uint64_t size = 0;
  std::int64_t used = 0;  // nanoseconds
};

std::optional<File> look_at(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return File{path, static_cast<std::uint64_t>(info.st_blocks) * 512,
              info.st_mtim.tv_sec * kSecond + info.st_mtim.tv_nsec};
}

// Everything of ours in the cache: nothing else below the folder is looked at, whatever it is.
std::vector<File> cache_files(const std::string& folder) {
  std::vector<File> files;
  for (const char* part : {"/objects", "/last"}) {
    std::error_code code;
    std::filesystem::recursive_directory_iterator entries(folder + part, code), end;
    for (; !code && entries != end; entries.increment(code))
      if (auto file = look_at(entries->path().string())) files.push_back(std::move(*file));
  }
  return files;
}

// write_file_atomically() writes to NAME.XXXXXX; a builder that is killed leaves that.
bool is_left_over(const File& file) {
  struct timespec now {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  // One of the future was written before a clock was put back: nobody writes it any more either.
  const std::int64_t age = now.tv_sec * kSecond + now.tv_nsec - file.used;
  return path_basename(file.path).find('.') != std::string::npos && std::abs(age) > kLeftOver;
}

bool remove(const File& file) {
  // A builder that found it in the meantime has its bytes, and will want them again.
  const auto now = look_at(file.path);
  return now && now->used == file.used && ::unlink(file.path.c_str()) == 0;
}

}  // namespace

void Cache::trim() const {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (!stored_) return;
  }
  const Descriptor lock(::open((folder_ + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (lock.get() < 0 || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return;
  std::vector<File> files = cache_files(folder_);
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.used < b.used; });
  std::uint64_t total = 0;
  for (const File& file : files) total += file.size;
  const std::lock_guard<std::mutex> guard(mutex_);
  for (const File& file : files) {
    const bool over = total > limit_ && used_.count(file.path) == 0;
    if ((over || is_left_over(file)) && remove(file)) total -= file.size;
  }
  if (total > limit_)
    notes_.push_back(
        say("what this build keeps in the cache {} is more than --cache-size allows: {:.1f} MB of {:.1f} MB",
            folder_, static_cast<double>(total) / 1e6, static_cast<double>(limit_) / 1e6));
}

}  // namespace scankit
