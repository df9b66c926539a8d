// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "doctor/host/host.h"

namespace scankit {

// Hashes of files that have not changed since they were read: one file below the cache folder. A file counts
// as unchanged while its device, inode, size and both of its times are the same; the time of change cannot be
// set back. Processes that save at the same time lose entries at worst, which are then hashed again. A cache
// that cannot be read or written costs time, never an answer.
class HashCache {
 public:
  static constexpr std::size_t kLimit = 20000;  // entries, 130 bytes each: those used last are kept

  explicit HashCache(const std::string& folder);  // "": remembers nothing
  std::optional<std::string> find(const FileInfo& info);
  // Not kept where the file changed so lately that a second change would leave the times as they are.
  void add(const FileInfo& info, const std::string& sha256);
  void save();

 private:
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

}  // namespace scankit
