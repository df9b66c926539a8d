// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <elf.h>

#include <cstring>
#include <string>
#include <vector>

#include "doctor/base/sha256.h"
#include "kernels/common/driver_context.h"

// For tests: a file that holds device images as a finished module does, and nothing else.
namespace scankit {

struct TestImage {
  unsigned kind, sm;
  std::string unit, bytes;
  std::size_t full_size = 0;  // where `bytes` is an LZ4 block
};

inline std::string image_index(const std::vector<TestImage>& images, std::size_t first_offset) {
  std::string index(device::kImageMagic, 8);
  const uint32_t head[2] = {static_cast<uint32_t>(images.size()), sizeof(device::ImageEntry)};
  index.append(reinterpret_cast<const char*>(head), sizeof head);
  for (const TestImage& image : images) {
    device::ImageEntry entry = {};
    entry.kind = image.kind;
    entry.sm = image.sm;
    entry.full_size = static_cast<uint32_t>(image.full_size);
    entry.section_offset = sizeof(Elf64_Ehdr);
    entry.offset = first_offset;
    entry.size = image.bytes.size();
    first_offset += image.bytes.size();
    Sha256 hash;
    hash.update(image.bytes.data(), image.bytes.size());
    hash.finish(entry.sha256);
    image.unit.copy(entry.unit, sizeof entry.unit - 1);
    index.append(reinterpret_cast<const char*>(&entry), sizeof entry);
  }
  return index;
}

// ELF header, payloads, section names, index, four section headers. `moved_by`: as after a tool that moved
// the payloads and did not know of the index.
inline std::string image_file(const std::vector<TestImage>& images, std::size_t moved_by = 0) {
  std::string file(sizeof(Elf64_Ehdr), '\0');
  const std::string index = image_index(images, file.size());
  file.append(moved_by, '\0');
  Elf64_Shdr sections[4] = {};
  sections[3].sh_name = 27;
  sections[3].sh_type = SHT_PROGBITS;
  sections[3].sh_offset = file.size();
  for (const TestImage& image : images) file += image.bytes;
  sections[3].sh_size = file.size() - sections[3].sh_offset;
  const std::string names("\0.shstrtab\0.scankit.images\0.nv_fatbin\0", 38);
  sections[1].sh_name = 1;
  sections[1].sh_type = SHT_STRTAB;
  sections[1].sh_offset = file.size();
  sections[1].sh_size = names.size();
  file += names;
  sections[2].sh_name = 11;
  sections[2].sh_type = SHT_PROGBITS;
  sections[2].sh_offset = file.size();
  sections[2].sh_size = index.size();
  file += index;
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_shoff = file.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 4;
  header.e_shstrndx = 1;
  file.append(reinterpret_cast<const char*>(sections), sizeof sections);
  file.replace(0, sizeof header, reinterpret_cast<const char*>(&header), sizeof header);
  return file;
}

}  // namespace scankit
