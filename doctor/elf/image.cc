// SPDX-License-Identifier: Apache-2.0
#include "doctor/elf/image.h"

#include <elf.h>

#include <algorithm>

#include "doctor/base/say.h"

namespace scankit {
namespace {

std::uint16_t swapped(std::uint16_t v) { return __builtin_bswap16(v); }
std::uint32_t swapped(std::uint32_t v) { return __builtin_bswap32(v); }

// e_flags has another offset in a 32-bit header than in a 64-bit one; hence a template.
template <class Header>
void take_header(const Header& header, Identity& id) {
  id.type = id.little_endian ? header.e_type : swapped(header.e_type);
  id.machine = id.little_endian ? header.e_machine : swapped(header.e_machine);
  id.flags = id.little_endian ? header.e_flags : swapped(header.e_flags);
}

}  // namespace

Result<Identity> identify_elf(const FileBytes& file) {
  struct Ident {
    unsigned char bytes[EI_NIDENT];
  };
  SCANKIT_TRY(const Ident ident, file.read<Ident>(0));
  if (std::memcmp(ident.bytes, ELFMAG, SELFMAG) != 0) return malformed_elf(say("not an ELF file"));
  const unsigned width = ident.bytes[EI_CLASS], order = ident.bytes[EI_DATA];
  if ((width != ELFCLASS32 && width != ELFCLASS64) || (order != ELFDATA2LSB && order != ELFDATA2MSB))
    return malformed_elf(say("ELF of an unknown class or byte order"));
  Identity id;
  id.is_64 = width == ELFCLASS64;
  id.little_endian = order == ELFDATA2LSB;
  id.os_abi = ident.bytes[EI_OSABI];
  id.abi_version = ident.bytes[EI_ABIVERSION];
  if (id.is_64) {
    SCANKIT_TRY(const Elf64_Ehdr header, file.read<Elf64_Ehdr>(0));
    take_header(header, id);
  } else {
    SCANKIT_TRY(const Elf32_Ehdr header, file.read<Elf32_Ehdr>(0));
    take_header(header, id);
  }
  return id;
}

std::string machine_name(const Identity& id) {
  switch (id.machine) {
    case EM_X86_64:
      return id.is_64 ? "x86_64" : "x32";  // x32: 64-bit code with 32-bit pointers
    case EM_AARCH64:
      return "aarch64";
    case EM_386:
      return "i686";
    case EM_ARM:
      return "armv7l";
    case EM_PPC64:
      return id.little_endian ? "ppc64le" : "ppc64";
    case EM_S390:
      return "s390x";
    case EM_RISCV:
      return id.is_64 ? "riscv64" : "riscv32";
    case 258:
      return "loongarch64";  // EM_LOONGARCH, which older <elf.h> do not name
    case 190:
      return "cuda";  // EM_CUDA: a bare device image
    default:
      return say("machine {}", id.machine);
  }
}

// The program headers are read at once, the section headers only when sections() is asked. Whether segments
// lie inside the file is not checked here: missing_part() says it.
Result<Image> Image::open(std::shared_ptr<const ByteSource> source) {
  Image image;
  image.file_ = FileBytes(std::move(source));
  SCANKIT_TRY(image.identity_, identify_elf(image.file_));
  if (!image.identity_.is_64 || !image.identity_.little_endian)
    return Error{Errc::Unsupported,
                 say("a file for {}, which is not supported", machine_name(image.identity_)), ""};
  SCANKIT_TRY(const Elf64_Ehdr header, image.file_.read<Elf64_Ehdr>(0));
  image.section_offset_ = header.e_shoff;
  image.section_count_ = header.e_shnum;
  image.section_entry_ = header.e_shentsize;
  image.section_names_ = header.e_shstrndx;
  if (header.e_phnum == 0) return image;
  if (header.e_phentsize != sizeof(Elf64_Phdr))
    return malformed_elf(say("program headers of an unknown size"));
  SCANKIT_TRY(const Bytes table,
              image.file_.slice(header.e_phoff, std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr)));
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    const auto entry = table.element<Elf64_Phdr>(i);
    if (!entry) return malformed_elf(say("the program headers are truncated"));
    image.segments_.push_back(
        {entry->p_type, entry->p_flags, entry->p_offset, entry->p_vaddr, entry->p_filesz, entry->p_memsz});
  }
  return image;
}

std::optional<Segment> Image::segment(std::uint32_t type) const {
  for (const Segment& s : segments_)
    if (s.type == type) return s;
  return std::nullopt;
}

// Only the part of a segment that the file backs counts, so an address in .bss is an error. PT_LOAD alone:
// the other program headers describe pieces of the loaded ones.
Result<std::uint64_t> Image::offset_of(std::uint64_t address, std::uint64_t length) const {
  for (const Segment& s : segments_) {
    if (s.type != PT_LOAD || address < s.address) continue;
    const std::uint64_t inside = address - s.address;
    if (inside > s.file_size || length > s.file_size - inside) continue;
    const auto offset = checked_add(s.offset, inside);
    if (offset) return *offset;
  }
  return malformed_elf(say("address {} is not in a loaded part of the file", address));
}

Result<Bytes> Image::at_address(std::uint64_t address, std::uint64_t length) const {
  SCANKIT_TRY(const std::uint64_t offset, offset_of(address, length));
  return file_.slice(offset, length);
}

// For tables without a stated length, such as the chains of DT_GNU_HASH.
std::uint64_t Image::bytes_from(std::uint64_t address) const {
  for (const Segment& s : segments_)
    if (s.type == PT_LOAD && address >= s.address && address - s.address < s.file_size)
      return s.file_size - (address - s.address);
  return 0;
}

// An e_shnum of 0 with a section table means 0xff00 sections or more (gABI, "ELF Header"). Such a file
// counts as one without sections.
std::vector<Section> Image::sections() const {
  if (section_offset_ == 0 || section_count_ == 0 || section_entry_ != sizeof(Elf64_Shdr)) return {};
  const auto table = file_.slice(section_offset_, std::uint64_t{section_count_} * sizeof(Elf64_Shdr));
  if (!table) return {};
  const auto names_header = table->element<Elf64_Shdr>(section_names_);
  if (!names_header) return {};
  const auto names = file_.slice(names_header->sh_offset, names_header->sh_size, 1u << 20);
  if (!names) return {};
  std::vector<Section> found;
  for (std::uint64_t i = 0; i < section_count_; ++i) {
    const auto h = table->element<Elf64_Shdr>(i);
    if (!h) return {};
    found.push_back({std::string(names->c_string(h->sh_name).value_or("")), h->sh_type, h->sh_info,
                     h->sh_flags, h->sh_addr, h->sh_offset, h->sh_size});
  }
  return found;
}

// A download that was cut short keeps the headers, which come first, and loses its end: the last segments,
// or the section table that linkers write last.
std::optional<std::string> Image::missing_part() const {
  const std::uint64_t whole = file_.size();
  const auto ends_beyond = [&](std::uint64_t offset, std::uint64_t length) {
    const auto end = checked_add(offset, length);
    return !end || *end > whole;
  };
  for (const Segment& s : segments_)
    if (s.file_size > 0 && s.type != PT_NULL && ends_beyond(s.offset, s.file_size))
      return say("the segment at {} of {} bytes extends beyond the file's {} bytes", s.offset, s.file_size,
                 whole);
  if (section_offset_ != 0 &&
      ends_beyond(section_offset_, std::uint64_t{section_count_} * std::uint64_t{section_entry_}))
    return say("the section table at {} extends beyond the file's {} bytes", section_offset_, whole);
  return std::nullopt;
}

}  // namespace scankit
