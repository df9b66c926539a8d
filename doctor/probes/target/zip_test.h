// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

namespace scankit::test {

// One member. `said_size` and `crc_error` make its headers lie; `flags` and `method` are written into them,
// while the bytes are always stored raw.
struct Entry {
  std::string name, bytes;
  unsigned unix_mode = 0100644;
  std::uint32_t said_size = 0;  // 0: the true one
  std::uint32_t crc_error = 0;
  unsigned flags = 0, method = 0;
};

inline void put(std::string& out, std::uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

// A zip archive of stored members (APPNOTE.TXT 4.3), with whatever lies the test wants.
// `before`: how many bytes will stand before it.
inline std::string zip_of(const std::vector<Entry>& entries, std::uint32_t before = 0) {
  std::string out, directory;
  for (const Entry& entry : entries) {
    const auto offset = static_cast<std::uint32_t>(out.size());
    const auto size = static_cast<std::uint32_t>(entry.bytes.size());
    const auto crc =
        static_cast<std::uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(entry.bytes.data()), size)) ^
        entry.crc_error;
    std::string common;
    put(common, entry.flags, 2);
    put(common, entry.method, 2);
    put(common, 0, 4);
    put(common, crc, 4);
    put(common, size, 4);
    put(common, entry.said_size != 0 ? entry.said_size : size, 4);
    put(common, static_cast<std::uint32_t>(entry.name.size()), 2);
    put(common, 0, 2);
    put(out, 0x04034b50, 4);
    put(out, 20, 2);
    out += common + entry.name + entry.bytes;
    put(directory, 0x02014b50, 4);
    put(directory, 3u << 8 | 20, 2);
    put(directory, 20, 2);
    directory += common;
    put(directory, 0, 4);
    put(directory, 0, 2);
    put(directory, entry.unix_mode << 16, 4);
    put(directory, before + offset, 4);
    directory += entry.name;
  }
  const auto start = static_cast<std::uint32_t>(out.size());
  out += directory;
  put(out, 0x06054b50, 4);
  put(out, 0, 4);
  put(out, static_cast<std::uint32_t>(entries.size()), 2);
  put(out, static_cast<std::uint32_t>(entries.size()), 2);
  put(out, static_cast<std::uint32_t>(directory.size()), 4);
  put(out, before + start, 4);
  put(out, 0, 2);
  return out;
}

}  // namespace scankit::test
