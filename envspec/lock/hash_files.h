// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/host/host.h"

namespace scankit::envspec {

// Hashes of files that have not changed since they were read, stored in one file of the cache
// directory. A file counts as unchanged while its device, inode, size, mtime and ctime are the
// same; no system call can set ctime back. Processes that save at the same time lose entries at
// worst, and those files are hashed again. A cache that cannot be read or written costs time, and
// never changes an answer.
class HashCache {
 public:
  static constexpr std::size_t kLimit = 20000;  // entries, 130 bytes each: those used last are kept

  explicit HashCache(const std::string& folder);  // "": remembers nothing
  // The SHA-256 in lower-case hex. A hit also counts as a use, which save() writes back once a day.
  std::optional<std::string> find(const FileInfo& info);
  // Not kept where the file changed so lately that a second change would leave the times as they are.
  void add(const FileInfo& info, const std::string& sha256);
  // Merges what was added with what other processes have written meanwhile. Failures are silent.
  void save();

 private:
  // Device, inode, size, mtime and ctime in nanoseconds.
  using Key = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::int64_t, std::int64_t>;
  struct Entry {
    std::string sha256;
    std::uint64_t used = 0;  // the day of its last use, since 1970
  };
  using Entries = std::map<Key, Entry>;
  static Key key_of(const FileInfo& info);
  static Entries read(const std::string& file);
  static std::string text_of(const Entries& entries);

  std::string folder_, file_;
  Entries entries_, fresh_;  // fresh_: what save() has to write
};

// One file of hash_files(). A file that cannot be read has an error in place of its hash.
struct HashedFile {
  std::uint64_t size = 0;
  Result<std::string> sha256 = std::string();  // Errc::Conflict: it changed while it was read
};

// The hashes of these files, in their order: those that the cache knows by their times, the others read by as
// many threads as the disk and the processors can use. `progress` comes from one thread at a time.
using HashProgress = std::function<void(std::uint64_t bytes_done, std::uint64_t bytes_all)>;
std::vector<HashedFile> hash_files(const Host& host, const std::vector<std::string>& paths, HashCache& cache,
                                   const HashProgress& progress = {});

}  // namespace scankit::envspec
