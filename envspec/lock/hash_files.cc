// SPDX-License-Identifier: Apache-2.0
#include "envspec/lock/hash_files.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "doctor/base/say.h"
#include "doctor/base/sha256_stream.h"

namespace scankit {
namespace {

constexpr std::size_t kPiece = 1u << 20;
constexpr unsigned kThreads = 4;  // SHA-256 does 1.2 GB/s a thread; few disks give more than four of them

bool same(const FileInfo& a, const FileInfo& b) {
  return a.device == b.device && a.inode == b.inode && a.size == b.size && a.mtime_ns == b.mtime_ns &&
         a.ctime_ns == b.ctime_ns;
}

// A file that an installer writes at this moment would get the hash of a state that never was.
Error changed(const std::string& path) {
  return {Errc::Conflict, say("{} changed while it was read", path),
          say("wait until whatever installs packages there is done, and run it again")};
}

class Hasher {
 public:
  Hasher(const Host& host, const std::vector<std::string>& paths, HashCache& cache,
         const HashProgress& progress)
      : host_(host), paths_(paths), cache_(cache), progress_(progress), files_(paths.size()) {}

  std::vector<HashedFile> all() {
    for (std::size_t i = 0; i < paths_.size(); ++i) look_up(i);
    // The largest first, so that no thread is left alone with it at the end.
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

}  // namespace scankit
