// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/host/host.h"

namespace scankit {

// /etc/ld.so.cache in the format "glibc-ld.so.cache1.1" (glibc elf/dl-cache.h), alone or behind the old one.
class LdCache {
 public:
  struct Entry {
    std::string soname, path;
    std::string hwcap;  // glibc-hwcaps folder it was found in; empty for the plain one
  };
  LdCache() = default;
  // Entries for 64-bit libraries of `machine` (EM_...). Empty where there is no cache or it is damaged:
  // `note` says so.
  static LdCache read(const Host& host, std::uint16_t machine);
  static LdCache parse(std::string bytes, std::uint16_t machine);

  // The file that the loader would try for this name on a processor with these hwcaps (best first); empty
  // where the cache has none.
  std::vector<std::string> lookup(std::string_view soname, const std::vector<std::string>& hwcaps) const;
  const std::vector<Entry>& entries() const { return entries_; }
  const std::string& note() const { return note_; }

 private:
  std::vector<Entry> entries_;  // sorted by soname
  std::string note_;
};

}  // namespace scankit
