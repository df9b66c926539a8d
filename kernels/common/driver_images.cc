// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor/base/sha256.h"
#include "kernels/common/driver_context.h"

// Reads a section of the module's own ELF file with pread(), without mapping it and without libelf. Every
// offset and count is checked before it is used: the file may be cut or replaced.
namespace scankit::device {
namespace {

constexpr uint32_t kMostSections = 4096, kMostImages = 4096;
constexpr uint64_t kMostImageBytes = uint64_t{256} << 20;
constexpr const char* kIndexSection = ".scankit.images";
constexpr const char* kPayloadSection = ".nv_fatbin";

bool fail(Message* message, const char* what) {
  snprintf(message->text, sizeof message->text,
           "the module's own file is damaged (%s): install it again, or run scankit build", what);
  return false;
}

// Written so that no sum can overflow.
bool inside(uint64_t offset, uint64_t size, uint64_t file_size) {
  return offset <= file_size && size <= file_size - offset;
}

bool read_exactly(int fd, void* to, uint64_t size, uint64_t offset) {
  auto* bytes = static_cast<unsigned char*>(to);
  while (size > 0) {
    const ssize_t got = pread(fd, bytes, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes += got;
    size -= static_cast<uint64_t>(got);
    offset += static_cast<uint64_t>(got);
  }
  return true;
}

// Searches the section headers for a name. Returns false for a damaged file; `found` is false if the file
// has no such section, which is a module without images.
bool find_section(int fd, uint64_t file_size, const char* wanted, Elf64_Shdr* section, bool* found,
                  Message* message) {
  Elf64_Ehdr header;
  if (!inside(0, sizeof header, file_size) || !read_exactly(fd, &header, sizeof header, 0))
    return fail(message, "shorter than an ELF header");
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB)
    return fail(message, "not a 64-bit little-endian ELF file");
  *found = false;
  if (header.e_shnum == 0) return true;
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum > kMostSections ||
      header.e_shstrndx >= header.e_shnum ||
      !inside(header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr), file_size))
    return fail(message, "its section headers are outside the file");
  Elf64_Shdr names;
  if (!read_exactly(fd, &names, sizeof names, header.e_shoff + header.e_shstrndx * sizeof names) ||
      !inside(names.sh_offset, names.sh_size, file_size))
    return fail(message, "its section names are outside the file");
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    if (!read_exactly(fd, section, sizeof *section, header.e_shoff + i * sizeof *section))
      return fail(message, "its section headers cannot be read");
    char name[32];
    const size_t length = strlen(wanted) + 1;  // with its NUL
    if (section->sh_name > names.sh_size || names.sh_size - section->sh_name < length) continue;
    if (!read_exactly(fd, name, length, names.sh_offset + section->sh_name))
      return fail(message, "its section names cannot be read");
    if (memcmp(name, wanted, length) != 0) continue;
    *found = true;
    return true;
  }
  return true;
}

bool check_entry(const ImageEntry& entry, uint64_t file_size) {
  return (entry.kind == kImagePtx || entry.kind == kImageCubin) && entry.size > 0 &&
         entry.size <= kMostImageBytes && entry.full_size <= kMostImageBytes &&
         inside(entry.offset, entry.size, file_size) && entry.unit[kImageNameBytes - 1] == '\0';
}

// strip and patchelf may move the section with the payloads without changing the index. The entries'
// offsets move along with the section.
bool follow_payloads(int fd, ImageIndex* index, Message* message) {
  Elf64_Shdr payloads;
  bool found = false;
  if (!find_section(fd, index->file_size, kPayloadSection, &payloads, &found, message)) return false;
  for (uint32_t i = 0; found && i < index->count; ++i)
    if (index->entries[i].section_offset != 0)
      index->entries[i].offset += payloads.sh_offset - index->entries[i].section_offset;
  return true;
}

bool read_entries(int fd, const Elf64_Shdr& section, ImageIndex* index, Message* message) {
  struct {
    char magic[8];
    uint32_t count, entry_size;
  } head;
  static_assert(sizeof head == 16);
  if (section.sh_size < sizeof head || !inside(section.sh_offset, section.sh_size, index->file_size) ||
      !read_exactly(fd, &head, sizeof head, section.sh_offset) || memcmp(head.magic, kImageMagic, 8) != 0)
    return fail(message, "its index of device images is not one");
  if (head.entry_size != sizeof(ImageEntry) || head.count > kMostImages ||
      section.sh_size - sizeof head < uint64_t{head.count} * sizeof(ImageEntry))
    return fail(message, "its index of device images is cut or of another version");
  const size_t bytes = head.count * sizeof(ImageEntry);
  index->entries = static_cast<ImageEntry*>(malloc(bytes > 0 ? bytes : 1));
  if (index->entries == nullptr || !read_exactly(fd, index->entries, bytes, section.sh_offset + sizeof head))
    return fail(message, "its index of device images cannot be read");
  index->count = head.count;
  if (!follow_payloads(fd, index, message)) return false;
  for (uint32_t i = 0; i < index->count; ++i)
    if (!check_entry(index->entries[i], index->file_size))
      return fail(message, "an entry of its index of device images points outside the file");
  return true;
}

// How good an image is for a device; 0 where it cannot run there. A cubin runs on GPUs of the same major
// version and the same or a higher minor one, and is better than any PTX, which needs a compilation.
int usefulness(const ImageEntry& entry, int capability) {
  const int sm = static_cast<int>(entry.sm < 10000 ? entry.sm : 0);
  if (sm == 0 || sm > capability) return 0;
  if (entry.kind == kImagePtx) return sm;
  return sm / 10 == capability / 10 ? 10000 + sm : 0;
}

}  // namespace

bool read_image_index(int fd, ImageIndex* index, Message* message) {
  *index = {};
  const off_t end = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
  if (end < 0) {
    snprintf(message->text, sizeof message->text,
             "the module's own file could not be opened at import, so its device images cannot be read");
    return false;
  }
  index->file_size = static_cast<uint64_t>(end);
  Elf64_Shdr section;
  bool found = false;
  bool ok = find_section(fd, index->file_size, kIndexSection, &section, &found, message);
  if (ok && found) ok = read_entries(fd, section, index, message);
  if (!ok) release_index(index);
  return ok;
}

void release_index(ImageIndex* index) {
  free(index->entries);
  index->entries = nullptr;
  index->count = 0;
}

// Finds the best entry below the previous one, `rank` times. The index is too small for sorting to pay.
const ImageEntry* select_image(const ImageIndex& index, const char* unit, int capability, int rank) {
  int below = 1 << 30;
  const ImageEntry* best = nullptr;
  for (; rank >= 0; --rank) {
    best = nullptr;
    for (uint32_t i = 0; i < index.count; ++i) {
      const ImageEntry& entry = index.entries[i];
      const int value = strcmp(entry.unit, unit) == 0 ? usefulness(entry, capability) : 0;
      if (value > 0 && value < below && (best == nullptr || value > usefulness(*best, capability)))
        best = &entry;
    }
    if (best == nullptr) return nullptr;
    below = usefulness(*best, capability);
  }
  return best;
}

namespace {

// The payload, with the hash of its entry and a NUL behind it.
unsigned char* read_payload(int fd, const ImageEntry& entry, Message* message) {
  auto* bytes = static_cast<unsigned char*>(malloc(entry.size + 1));
  if (bytes == nullptr) {
    snprintf(message->text, sizeof message->text, "no memory for the device image %s", entry.unit);
    return nullptr;
  }
  bytes[entry.size] = 0;
  unsigned char digest[32] = {};
  const bool whole = read_exactly(fd, bytes, entry.size, entry.offset);
  if (whole) {
    Sha256 hash;
    hash.update(bytes, entry.size);
    hash.finish(digest);
  }
  if (whole && memcmp(digest, entry.sha256, sizeof digest) == 0) return bytes;
  free(bytes);
  fail(message,
       whole ? "a device image does not have the hash that its index gives" : "a device image is cut");
  return nullptr;
}

// What is left of a block while it is unpacked.
struct Packed {
  const unsigned char *at, *end;
};

// A length of 15 in a token goes on in the bytes behind it, up to the first that is not 255.
bool read_length(Packed* packed, size_t* length) {
  if (*length != 15) return true;
  unsigned char more = 255;
  while (more == 255) {
    if (packed->at == packed->end) return false;
    more = *packed->at++;
    *length += more;
  }
  return true;
}

// A match may overlap what it makes: then its first `distance` bytes recur. Each round copies all that is
// there of it already, twice as much as the one before.
unsigned char* repeat(unsigned char* to, size_t distance, size_t length) {
  const unsigned char* from = to - distance;
  while (length > 0) {
    const auto there = static_cast<size_t>(to - from);
    const size_t now = length < there ? length : there;
    memcpy(to, from, now);
    to += now;
    length -= now;
  }
  return to;
}

// An LZ4 block (lz4_Block_format.md): sequences of a token (two lengths of four bits), literals, and a match:
// a distance of two bytes back into what is unpacked already. The last sequence has no match. False unless
// the block makes exactly [out, end).
bool unpack_lz4(Packed packed, unsigned char* const out, unsigned char* const end) {
  unsigned char* to = out;
  while (packed.at != packed.end) {
    const unsigned token = *packed.at++;
    size_t literals = token >> 4, match = token & 15;
    if (!read_length(&packed, &literals) || literals > static_cast<size_t>(packed.end - packed.at) ||
        literals > static_cast<size_t>(end - to))
      return false;
    memcpy(to, packed.at, literals);
    to += literals;
    packed.at += literals;
    if (packed.at == packed.end) break;
    if (packed.end - packed.at < 2) return false;
    const size_t distance = packed.at[0] | static_cast<size_t>(packed.at[1]) << 8;
    packed.at += 2;
    if (!read_length(&packed, &match)) return false;
    match += 4;  // the shortest
    if (distance == 0 || distance > static_cast<size_t>(to - out) || match > static_cast<size_t>(end - to))
      return false;
    to = repeat(to, distance, match);
  }
  return to == end;
}

}  // namespace

void* read_image(int fd, const ImageEntry& entry, Message* message) {
  unsigned char* payload = read_payload(fd, entry, message);
  if (payload == nullptr || entry.full_size == 0) return payload;
  auto* image = static_cast<unsigned char*>(malloc(image_size(entry) + 1));
  if (image == nullptr) {
    snprintf(message->text, sizeof message->text, "no memory for the device image %s", entry.unit);
  } else if (unpack_lz4({payload, payload + entry.size}, image, image + entry.full_size)) {
    image[entry.full_size] = 0;
  } else {
    fail(message, "a device image does not have the size that its index gives");
    free(image);
    image = nullptr;
  }
  free(payload);
  return image;
}

// Lists what the module has for this unit, so that the user sees what is missing.
bool no_image(const ImageIndex& index, const char* unit, int capability, Message* message) {
  char held[256] = {};
  size_t used = 0;
  for (uint32_t i = 0; i < index.count && used < sizeof held; ++i) {
    const ImageEntry& entry = index.entries[i];
    if (strcmp(entry.unit, unit) != 0) continue;
    used += static_cast<size_t>(snprintf(held + used, sizeof held - used, "%s%s%u", used > 0 ? ", " : "",
                                         entry.kind == kImagePtx ? "PTX for compute_" : "sm_", entry.sm));
  }
  snprintf(
      message->text, sizeof message->text,
      "no device image of %s for this GPU (sm_%d); the module contains %s: run scankit build --arch sm_%d",
      unit, capability, used > 0 ? held : "none", capability);
  return false;
}

}  // namespace scankit::device
