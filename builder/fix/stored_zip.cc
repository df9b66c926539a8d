// SPDX-License-Identifier: Apache-2.0
#include "builder/fix/stored_zip.h"

#include <zlib.h>

#include <cstdint>

// By hand: minizip writes to a file by name and stamps what the caller cannot set. APPNOTE.TXT 4.3.7, 4.3.12
// and 4.3.16; a wheel has neither comments nor 4 GB.
namespace scankit {
namespace {

void put(std::string& to, std::uint32_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) to += static_cast<char>(value >> (8 * i) & 0xff);
}

// What the local and the central header have in common: from the version needed to the length of the extra
// field.
std::string common(const InstalledFile& file) {
  std::string out;
  const auto size = static_cast<std::uint32_t>(file.bytes.size());
  put(out, 20, 2);    // version 2.0
  put(out, 0, 2);     // flags
  put(out, 0, 2);     // stored
  put(out, 0, 2);     // midnight
  put(out, 0x21, 2);  // 1 January 1980
  put(out, static_cast<std::uint32_t>(::crc32(0, reinterpret_cast<const Bytef*>(file.bytes.data()), size)),
      4);
  put(out, size, 4);
  put(out, size, 4);
  put(out, static_cast<std::uint32_t>(file.path.size()), 2);
  put(out, 0, 2);
  return out;
}

}  // namespace

std::string stored_zip(const std::vector<InstalledFile>& files) {
  std::string out, central;
  for (const InstalledFile& file : files) {
    const std::string header = common(file);
    const auto at = static_cast<std::uint32_t>(out.size());
    put(out, 0x04034b50, 4);
    out += header + file.path + file.bytes;
    put(central, 0x02014b50, 4);
    put(central, 0x0314, 2);  // made by Unix: the mode below counts
    central += header;
    put(central, 0, 2);  // no comment
    put(central, 0, 2);  // disk
    put(central, 0, 2);
    put(central, 0100644u << 16, 4);
    put(central, at, 4);
    central += file.path;
  }
  const auto at = static_cast<std::uint32_t>(out.size());
  out += central;
  put(out, 0x06054b50, 4);
  put(out, 0, 4);
  put(out, static_cast<std::uint32_t>(files.size()), 2);
  put(out, static_cast<std::uint32_t>(files.size()), 2);
  put(out, static_cast<std::uint32_t>(central.size()), 4);
  put(out, at, 4);
  put(out, 0, 2);
  return out;
}

}  // namespace scankit
