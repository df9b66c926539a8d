// SPDX-License-Identifier: Apache-2.0
#include "doctor/elf/fatbin.h"

#include <elf.h>

#include <algorithm>

#include "doctor/base/say.h"

namespace scankit {
namespace {

constexpr std::uint32_t kMagic = 0xba55ed50;
constexpr std::size_t kImageLimit = 1u << 16;  // the largest wheels hold some thousand
constexpr std::uint64_t kLz4 = 0x2000, kZstd = 0x8000, kArchSpecific = 0x100000, kFamily = 0x200000;

struct Container {
  std::uint32_t magic;
  std::uint16_t version, header_size;
  std::uint64_t size;  // what follows the header
};
struct FatbinEntryHeader {
  std::uint16_t kind, version;
  std::uint32_t header_size;
  std::uint64_t padded_size;
  std::uint32_t compressed_size, options;
  std::uint16_t minor, major;
  std::uint32_t arch, name_offset, name_length;
  std::uint64_t flags, reserved, full_size;
};
static_assert(sizeof(Container) == 16 && sizeof(FatbinEntryHeader) == 64);

Error damaged_fatbin(std::string why) {
  return {Errc::Malformed, say("the fatbin is damaged: {}", std::move(why)), ""};
}

FatbinEntry entry_from(const FatbinEntryHeader& raw, std::uint64_t payload) {
  FatbinEntry entry;
  entry.kind = raw.kind == 1   ? "ptx"
               : raw.kind == 2 ? "cubin"
               : raw.kind == 8 ? "lto"
                               : say("kind {}", raw.kind);
  entry.sm = raw.arch;
  entry.specific = (raw.flags & kArchSpecific) != 0 ? "a" : (raw.flags & kFamily) != 0 ? "f" : "";
  if (raw.kind == 1) entry.isa_major = raw.major, entry.isa_minor = raw.minor;
  entry.offset = payload;
  // LTO payloads carry the zstd flag without being zstd frames; nobody here unpacks them.
  const bool compressed = raw.compressed_size != 0 && raw.kind != 8;
  entry.compression = !compressed                ? "none"
                      : (raw.flags & kZstd) != 0 ? "zstd"
                      : (raw.flags & kLz4) != 0  ? "lz4"
                                                 : "unknown";
  entry.size = raw.compressed_size != 0 ? raw.compressed_size : raw.padded_size;
  entry.full_size = compressed ? raw.full_size : entry.size;
  return entry;
}

// Entries of one container, which is [at, end) behind its header.
Result<void> read_entries(const FileBytes& file, std::uint64_t at, std::uint64_t end,
                          std::vector<FatbinEntry>& found) {
  while (at < end) {
    if (found.size() >= kImageLimit) return damaged_fatbin(say("too many images"));
    if (end - at < sizeof(FatbinEntryHeader)) return damaged_fatbin(say("an entry is cut short"));
    SCANKIT_TRY(const FatbinEntryHeader raw, file.read<FatbinEntryHeader>(at));
    if (raw.header_size < sizeof(FatbinEntryHeader) || raw.header_size > 4096)
      return damaged_fatbin(say("an entry's header has an impossible size"));
    if (raw.header_size > end - at || raw.padded_size > end - at - raw.header_size)
      return damaged_fatbin(say("an image ends beyond its container"));
    if (raw.compressed_size > raw.padded_size)
      return damaged_fatbin(say("an image is longer than its place"));
    at += raw.header_size;
    found.push_back(entry_from(raw, at));
    at += raw.padded_size;
  }
  return {};
}

// Where the section table is gone: containers start at a multiple of 8 in what is mapped.
std::vector<FatbinEntry> scan_segments(const Image& image) {
  std::vector<FatbinEntry> found;
  constexpr std::uint64_t kPiece = 1u << 20;
  for (const Segment& s : image.segments()) {
    if (s.type != PT_LOAD) continue;
    for (std::uint64_t done = 0; done < s.file_size && found.size() < kImageLimit;) {
      const auto piece = image.file().slice(s.offset + done, std::min(kPiece, s.file_size - done));
      if (!piece) break;
      std::uint64_t next = piece->size();
      for (std::uint64_t i = 0; i < piece->size(); i += 8) {
        const auto head = piece->read<std::uint32_t>(i);
        if (!head || *head != kMagic) continue;
        const std::uint64_t start = s.offset + done + i;
        const auto container = image.file().read<Container>(start);
        if (!container || container->version != 1 || container->header_size != sizeof(Container)) continue;
        const std::uint64_t room = s.file_size - done - i - sizeof(Container);
        if (container->size > room) continue;
        if (!read_entries(image.file(), start + sizeof(Container),
                          start + sizeof(Container) + container->size, found))
          continue;
        next = i + sizeof(Container) + container->size;
        break;
      }
      done += (next + 7) & ~std::uint64_t{7};
    }
  }
  return found;
}

}  // namespace

Result<std::vector<FatbinEntry>> read_fatbin(const FileBytes& file, std::uint64_t offset,
                                             std::uint64_t size) {
  std::vector<FatbinEntry> found;
  const auto end = checked_add(offset, size);
  if (!end || *end > file.size()) return damaged_fatbin(say("it ends beyond the file"));
  for (std::uint64_t at = offset; *end - at >= sizeof(Container);) {
    SCANKIT_TRY(const Container container, file.read<Container>(at));
    if (container.magic != kMagic) {
      if (container.magic != 0) return damaged_fatbin(say("a container does not start with its signature"));
      at += 8;  // padding between the containers of several objects
      if (at > *end) break;
      continue;
    }
    if (container.version != 1 || container.header_size < sizeof(Container))
      return Error{Errc::Unsupported, say("a fatbin container of version {}", container.version), ""};
    if (container.header_size > *end - at || container.size > *end - at - container.header_size)
      return damaged_fatbin(say("a container ends beyond its section"));
    at += container.header_size;
    SCANKIT_CHECK(read_entries(file, at, at + container.size, found));
    at += container.size;
    at = std::min((at + 7) & ~std::uint64_t{7}, *end);
  }
  return found;
}

Result<std::vector<FatbinEntry>> find_device_images(const Image& image) {
  const std::vector<Section> sections = image.sections();
  if (sections.empty()) return scan_segments(image);
  std::vector<FatbinEntry> found;
  const bool is_object = image.identity().type == ET_REL;
  for (const Section& s : sections) {
    // Relocatable code (nvcc -rdc) is the device linker's input: a library that still carries it loads only
    // what was linked. cuobjdump lists the same.
    const bool counts = s.name == ".nv_fatbin" || (s.name == "__nv_relfatbin" && is_object);
    if (s.type == SHT_NOBITS || !counts) continue;
    SCANKIT_TRY(auto more, read_fatbin(image.file(), s.offset, s.size));
    std::ranges::move(more, std::back_inserter(found));
  }
  return found;
}

}  // namespace scankit
