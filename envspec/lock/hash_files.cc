// SPDX-License-Identifier: Apache-2.0
#include "envspec/lock/hash_files.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/sha256.h"

// Two parts: the cache of hashes that are known already, and the threads that hash the other files.
namespace scankit::envspec {
namespace {

// The first line is kMagic and the SHA-256 of the rest; each further line is one file. A file that was
// cut or edited does not match its hash and is ignored as a whole.
constexpr std::string_view kMagic = "scankit-hashes-1 ";
constexpr std::size_t kHexLength = 64, kFileLimit = 16u << 20;

std::int64_t now_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

// Days since 1970. Days are enough to tell which entries were used last, and most runs then have
// nothing to save.
std::uint64_t today() {
  constexpr std::int64_t kDay = 86'400'000'000'000;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, now_ns() / kDay));
}

// Takes a decimal number and the space after it; false leaves `line` as it was.
template <class Number>
bool take_number(std::string_view& line, Number& number) {
  const auto [end, problem] = std::from_chars(line.data(), line.data() + line.size(), number);
  if (problem != std::errc() || end == line.data() + line.size() || *end != ' ') return false;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()) + 1);
  return true;
}

}  // namespace

HashCache::HashCache(const std::string& folder)
    : folder_(folder), file_(folder.empty() ? "" : path_join(folder, "file-hashes")) {
  if (!file_.empty()) entries_ = read(file_);
}

HashCache::Key HashCache::key_of(const FileInfo& info) {
  return {info.device, info.inode, info.size, info.mtime_ns, info.ctime_ns};
}

HashCache::Entries HashCache::read(const std::string& file) {
  Entries entries;
  const auto text = read_private_file(file, kFileLimit);
  if (!text || !text->starts_with(kMagic) || text->size() <= kMagic.size() + kHexLength) return entries;
  std::string_view rest = std::string_view(*text).substr(kMagic.size() + kHexLength + 1);
  if (text->compare(kMagic.size(), kHexLength, sha256_hex(rest)) != 0) return entries;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    FileInfo info;
    Entry entry;
    if (!take_number(line, info.device) || !take_number(line, info.inode) || !take_number(line, info.size) ||
        !take_number(line, info.mtime_ns) || !take_number(line, info.ctime_ns) ||
        !take_number(line, entry.used) || line.size() != kHexLength)
      continue;
    entry.sha256 = line;
    entries[key_of(info)] = std::move(entry);
  }
  return entries;
}

std::string HashCache::text_of(const Entries& entries) {
  std::string lines;
  for (const auto& [key, entry] : entries) {
    const auto& [device, inode, size, mtime, ctime] = key;
    for (const std::string& number :
         {std::to_string(device), std::to_string(inode), std::to_string(size), std::to_string(mtime),
          std::to_string(ctime), std::to_string(entry.used)})
      lines += number + " ";
    lines += entry.sha256 + "\n";
  }
  return std::string(kMagic) + sha256_hex(lines) + "\n" + lines;
}

std::optional<std::string> HashCache::find(const FileInfo& info) {
  const auto found = entries_.find(key_of(info));
  if (found == entries_.end()) return std::nullopt;
  if (found->second.used != today()) fresh_[found->first] = {found->second.sha256, today()};
  return found->second.sha256;
}

void HashCache::add(const FileInfo& info, const std::string& sha256) {
  // A file that changes twice within one tick of the clock keeps its times, and the cached hash would
  // be that of the first state. Kernels stamp files with a clock that ticks every few milliseconds;
  // network file systems use the server's clock. Two seconds cover both.
  constexpr std::int64_t kSettled = 2'000'000'000;
  if (file_.empty() || std::max(info.mtime_ns, info.ctime_ns) > now_ns() - kSettled) return;
  fresh_[key_of(info)] = entries_[key_of(info)] = {sha256, today()};
}

void HashCache::save() {
  if (file_.empty() || fresh_.empty() || !make_private_folders(folder_)) return;
  // One writer at a time, who takes in what the others wrote meanwhile. Where the lock file cannot be
  // opened, entries may get lost, which is harmless.
  const Descriptor lock(::open((file_ + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (lock.get() >= 0) (void)::flock(lock.get(), LOCK_EX);
  Entries all = read(file_);
  for (const auto& [key, entry] : fresh_) all[key] = entry;
  if (all.size() > kLimit) {
    // Drops the entries that were not used for the longest time.
    std::vector<std::pair<std::uint64_t, Key>> by_age;
    for (const auto& [key, entry] : all) by_age.emplace_back(entry.used, key);
    std::ranges::sort(by_age);
    by_age.resize(all.size() - kLimit);
    for (const auto& [used, key] : by_age) all.erase(key);
  }
  if (write_file_atomically(file_, text_of(all))) fresh_.clear();
}

namespace {

constexpr std::size_t kPiece = 1u << 20;
constexpr unsigned kThreads = 4;  // SHA-256 does 1.2 GB/s a thread; few disks give more than four of them

bool same(const FileInfo& a, const FileInfo& b) {
  return a.device == b.device && a.inode == b.inode && a.size == b.size && a.mtime_ns == b.mtime_ns &&
         a.ctime_ns == b.ctime_ns;
}

// An installer that writes at this moment would leave the lock with the hash of a state
// that never existed.
Error changed(const std::string& path) {
  return {Errc::Conflict, message("{} changed while it was read", path),
          message("wait until the installer is finished, and run it again")};
}

// Hashes the files of one call. Only the calling thread uses the cache; the worker threads share
// nothing but the list of open files (taken_ is the next one) and the progress, which the mutex guards.
class Hasher {
 public:
  Hasher(const Host& host, const std::vector<std::string>& paths, HashCache& cache,
         const HashProgress& progress)
      : host_(host), paths_(paths), cache_(cache), progress_(progress), files_(paths.size()) {}

  std::vector<HashedFile> all() {
    for (std::size_t i = 0; i < paths_.size(); ++i) look_up(i);
    // The largest first: otherwise one thread could be left alone with a large file at the end.
    std::ranges::sort(open_, [&](std::size_t a, std::size_t b) { return files_[a].size > files_[b].size; });
    const unsigned wanted = std::min(kThreads, std::max(1u, std::thread::hardware_concurrency()));
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < std::min<std::size_t>(wanted, open_.size()); ++i)
      threads.emplace_back([this] { work(); });
    work();
    for (std::thread& thread : threads) thread.join();
    for (const std::size_t i : open_)
      if (files_[i].sha256) cache_.add(infos_[i], *files_[i].sha256);
    cache_.save();
    return std::move(files_);
  }

 private:
  // Runs once for each file in order, so that infos_[i] belongs to paths_[i].
  void look_up(std::size_t i) {
    auto info = host_.stat(paths_[i]);
    infos_.push_back(info.value_or(FileInfo{}));
    if (!info) {
      files_[i].sha256 = info.error();
      return;
    }
    files_[i].size = info->size;
    if (auto known = cache_.find(*info)) {
      files_[i].sha256 = *std::move(known);
      return;
    }
    open_.push_back(i);
    total_ += info->size;
  }

  void work() {
    for (std::size_t next = 0; (next = taken_++) < open_.size();) {
      const std::size_t i = open_[next];
      files_[i].sha256 = hash(paths_[i], infos_[i]);
    }
  }

  // Reads in pieces instead of mapping the file: a mapped file that is truncated kills the reader with
  // SIGBUS. The size and the times are compared before and after, so that a hash never mixes two states
  // of the file. The source reports a read behind the end of the file as Errc::Malformed.
  Result<std::string> hash(const std::string& path, const FileInfo& before) {
    SCANKIT_TRY(const auto source, host_.open(path));
    if (source->size() != before.size) return changed(path);
    std::string buffer(std::min<std::uint64_t>(kPiece, before.size), '\0');
    Sha256Stream stream;
    for (std::uint64_t at = 0; at < before.size;) {
      const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, before.size - at));
      const auto got = source->read(at, buffer.data(), length);
      if (!got) return got.error().code == Errc::Malformed ? changed(path) : got.error();
      stream.update(buffer.data(), length);
      at += length;
      tell(length);
    }
    const auto after = host_.stat(path);
    if (!after || !same(before, *after)) return changed(path);
    return stream.hex();
  }

  void tell(std::uint64_t bytes) {
    if (!progress_) return;
    const std::lock_guard<std::mutex> guard(mutex_);
    done_ += bytes;
    progress_(done_, total_);
  }

  const Host& host_;
  const std::vector<std::string>& paths_;
  HashCache& cache_;
  const HashProgress& progress_;
  std::vector<HashedFile> files_;
  std::vector<FileInfo> infos_;
  std::vector<std::size_t> open_;
  std::atomic<std::size_t> taken_ = 0;
  std::mutex mutex_;
  std::uint64_t done_ = 0, total_ = 0;
};

}  // namespace

std::vector<HashedFile> hash_files(const Host& host, const std::vector<std::string>& paths, HashCache& cache,
                                   const HashProgress& progress) {
  return Hasher(host, paths, cache, progress).all();
}

}  // namespace scankit::envspec
