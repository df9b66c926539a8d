// SPDX-License-Identifier: Apache-2.0
#include "doctor/elf/ld_cache.h"

#include <elf.h>

#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/elf/bytes.h"

namespace scankit {
namespace {

// CACHEMAGIC_VERSION_NEW, CACHEMAGIC, cache_extension_magic and DL_CACHE_HWCAP_EXTENSION of elf/dl-cache.h.
constexpr std::string_view kNewMagic = "glibc-ld.so.cache1.1";
constexpr std::string_view kOldMagic = "ld.so-1.7.0";
constexpr std::uint32_t kExtensionMagic = 0xeaa42174;
constexpr std::uint64_t kHwcapExtension = std::uint64_t{1} << 62;

// struct cache_file_new, file_entry_new and cache_extension_section of the same header. `key` and `value`
// are the offsets of the soname and of the path, from the start of Header.
struct Header {
  char magic[20];
  std::uint32_t count, string_length;
  std::uint8_t flags, padding[3];
  std::uint32_t extension_offset, unused[3];
};
struct CacheEntry {
  std::int32_t flags;
  std::uint32_t key, value, os_version;
  std::uint64_t hwcap;
};
struct ExtensionSection {
  std::uint32_t tag, flags, offset, size;
};
static_assert(sizeof(Header) == 48 && sizeof(CacheEntry) == 24);

// sysdeps/generic/ldconfig.h: FLAG_ELF_LIBC6 with the machine's bits.
std::int32_t wanted_flags(std::uint16_t machine) {
  switch (machine) {
    case EM_X86_64:
      return 0x0303;
    case EM_AARCH64:
      return 0x0a03;
    case EM_PPC64:
      return 0x0503;
    case EM_S390:
      return 0x0403;
    case EM_RISCV:
      return 0x1003;
    default:
      return -1;
  }
}

// The glibc-hwcaps subdirectories that entries refer to by their index here. Empty for an ldconfig older
// than glibc 2.33, which writes no extension. The bounds of 16 and 256 are for hostile files.
std::vector<std::string> hwcap_names(const Bytes& cache, const Header& header) {
  std::vector<std::string> names;
  const auto magic = cache.read<std::uint32_t>(header.extension_offset);
  const auto count = cache.read<std::uint32_t>(std::uint64_t{header.extension_offset} + 4);
  if (header.extension_offset == 0 || !magic || *magic != kExtensionMagic || !count) return names;
  for (std::uint64_t i = 0; i < std::min<std::uint32_t>(*count, 16); ++i) {
    const auto section =
        cache.read<ExtensionSection>(header.extension_offset + 8 + i * sizeof(ExtensionSection));
    if (!section || section->tag != 1) continue;  // cache_extension_tag_glibc_hwcaps
    const auto table = cache.slice(section->offset, section->size);
    for (std::uint64_t k = 0; table && k < std::min<std::uint32_t>(section->size / 4, 256); ++k)
      names.emplace_back(cache.c_string(*table->element<std::uint32_t>(k)).value_or(""));
  }
  return names;
}

}  // namespace

LdCache LdCache::read(const Host& host, std::uint16_t machine) {
  auto bytes = host.read_file("/etc/ld.so.cache");
  if (bytes) return parse(*std::move(bytes), machine);
  LdCache cache;
  cache.note_ = bytes.error().message;
  return cache;
}

LdCache LdCache::parse(std::string data, std::uint16_t machine) {
  LdCache cache;
  // `ldconfig --format=compat` writes the old format and the new one behind it.
  const auto start = data.find(kNewMagic);
  if (start == std::string::npos || (start != 0 && !data.starts_with(kOldMagic))) {
    cache.note_ = say("/etc/ld.so.cache is not in the format of glibc 2.2 or newer");
    return cache;
  }
  data.erase(0, start);  // offsets of the new format count from its own header
  const Bytes bytes(std::move(data));
  const auto header = bytes.read<Header>(0);
  if (!header) {
    cache.note_ = say("/etc/ld.so.cache is truncated");
    return cache;
  }
  const std::vector<std::string> names = hwcap_names(bytes, *header);
  const std::int32_t flags = wanted_flags(machine);
  for (std::uint64_t i = 0; i < header->count; ++i) {
    const auto raw = bytes.read<CacheEntry>(sizeof(Header) + i * sizeof(CacheEntry));
    if (!raw) {
      cache.note_ = say("/etc/ld.so.cache is truncated");
      break;
    }
    const auto name = bytes.c_string(raw->key), path = bytes.c_string(raw->value);
    if (raw->flags != flags || !name || !path) continue;
    std::string hwcap;
    if ((raw->hwcap & kHwcapExtension) != 0) {
      const auto index = static_cast<std::uint32_t>(raw->hwcap);
      if (index >= names.size()) continue;
      hwcap = names[index];
    } else if (raw->hwcap != 0) {
      continue;  // processor bits of ldconfig before 2.33, which no newer loader reads
    }
    cache.entries_.push_back({std::string(*name), std::string(*path), std::move(hwcap)});
  }
  // Stable: among entries of one soname the order of the file decides.
  std::ranges::stable_sort(cache.entries_, {}, &Entry::soname);
  return cache;
}

std::vector<std::string> LdCache::lookup(std::string_view soname,
                                         const std::vector<std::string>& hwcaps) const {
  const auto first = std::ranges::lower_bound(entries_, soname, std::less<>{}, &Entry::soname);
  const auto last = std::find_if(first, entries_.end(), [&](const Entry& e) { return e.soname != soname; });
  // The loader takes one entry: that of the best hwcap it has, or else the first plain one.
  for (const std::string& wanted : hwcaps)
    for (auto it = first; it != last; ++it)
      if (it->hwcap == wanted) return {it->path};
  for (auto it = first; it != last; ++it)
    if (it->hwcap.empty()) return {it->path};
  return {};
}

}  // namespace scankit
