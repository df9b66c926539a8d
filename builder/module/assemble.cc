// SPDX-License-Identifier: Apache-2.0
#include "builder/module/assemble.h"

#include <elf.h>

#include <cstring>

#include "builder/compile/fatbin.h"
#include "builder/module/little_endian.h"
#include "doctor/base/say.h"

namespace scankit {
namespace {

Error malformed(const std::string& what) {
  return {Errc::Malformed, say("the host module is not a complete 64-bit ELF file: {}", what), ""};
}

// Copies `count` structures at `offset`; nothing is read outside `bytes`.
template <class T>
Result<std::vector<T>> read_table(std::string_view bytes, std::uint64_t offset, std::uint64_t count,
                                  const std::string& what) {
  if (offset > bytes.size() || count > (bytes.size() - offset) / sizeof(T))
    return malformed(say("{} is outside the file", what));
  std::vector<T> table(count);
  if (count > 0) std::memcpy(table.data(), bytes.data() + offset, count * sizeof(T));
  return table;
}

// The header, the section table and its names, copied out of the file.
struct Sections {
  Elf64_Ehdr header{};
  std::vector<Elf64_Shdr> table;
  std::string names;  // contents of the section name table

  std::string name(const Elf64_Shdr& section) const {
    return section.sh_name < names.size() ? std::string(names.c_str() + section.sh_name) : std::string();
  }
};

// SHT_NOBITS takes no space in the file, whatever its offset and size say (gABI, Sections).
Result<std::string> contents(std::string_view elf, const Elf64_Shdr& section) {
  if (section.sh_type == SHT_NOBITS) return std::string();
  if (section.sh_offset > elf.size() || section.sh_size > elf.size() - section.sh_offset)
    return malformed(say("a section extends beyond the file"));
  return std::string(elf.substr(section.sh_offset, section.sh_size));
}

// With 0xff00 sections or more, e_shnum is 0 and the number is in the first section header (gABI, ELF
// Header). A module never has that many, so such a file counts as one without a table.
Result<Sections> read_sections(std::string_view elf) {
  Sections sections;
  SCANKIT_TRY(auto header, read_table<Elf64_Ehdr>(elf, 0, 1, say("the file header")));
  sections.header = header[0];
  const Elf64_Ehdr& h = sections.header;
  if (std::memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64 ||
      h.e_ident[EI_DATA] != ELFDATA2LSB)
    return malformed(say("it does not start with the ELF signature"));
  if (h.e_shentsize != sizeof(Elf64_Shdr) || h.e_shnum == 0 || h.e_shstrndx >= h.e_shnum)
    return malformed(say("it has no section table"));
  SCANKIT_TRY(sections.table, read_table<Elf64_Shdr>(elf, h.e_shoff, h.e_shnum, say("the section table")));
  SCANKIT_TRY(sections.names, contents(elf, sections.table[h.e_shstrndx]));
  sections.names += '\0';  // a name table that is not closed reads as one that is
  return sections;
}

// Appends one entry of `.scankit.images`, 128 bytes: ImageEntry of kernels/common/driver_images.h.
void append_index_entry(std::string& index, const BuiltCode& image, std::uint64_t offset,
                        std::uint64_t section) {
  append_little_endian<std::uint32_t>(index, image.target.ptx ? 1u : 2u);
  append_little_endian<std::uint32_t>(index, image.target.sm);
  append_little_endian<std::uint32_t>(index, 0);
  // Where .nv_fatbin is now. strip and patchelf may move the section, and `offset` minus this stays right.
  append_little_endian<std::uint32_t>(index, static_cast<std::uint32_t>(section));
  append_little_endian<std::uint64_t>(index, offset);
  append_little_endian<std::uint64_t>(index, image.bytes.size());
  for (std::size_t i = 0; i < 64; i += 2)
    index += static_cast<char>(std::stoi(image.sha256.substr(i, 2), nullptr, 16));
  std::string name = image.unit;
  name.resize(64, '\0');
  index += name;
}

}  // namespace

Result<std::string> append_sections(std::string_view elf, const std::vector<ModuleSection>& added,
                                    std::vector<std::uint64_t>& offsets) {
  SCANKIT_TRY(auto sections, read_sections(elf));
  for (const Elf64_Shdr& old : sections.table)
    for (const ModuleSection& section : added)
      if (sections.name(old) == section.name)
        return Error{Errc::Conflict, say("the host module already has a section {}", section.name),
                     say("start from the module as it was built, without device images")};
  // The new sections lack SHF_ALLOC and an address: no segment covers them, and nothing maps them.
  std::string out(elf);
  std::string names = sections.names;
  for (const ModuleSection& section : added) {
    pad_to(out, section.alignment);
    Elf64_Shdr header{};
    header.sh_name = static_cast<Elf64_Word>(names.size());
    header.sh_type = SHT_PROGBITS;
    header.sh_offset = out.size();
    header.sh_size = section.bytes.size();
    header.sh_addralign = section.alignment;
    sections.table.push_back(header);
    offsets.push_back(out.size());
    names += section.name + '\0';
    out += section.bytes;
  }
  // The old name table and the old section table stay where they are, unused. Every offset in the file stays
  // right because nothing moves.
  Elf64_Shdr& name_table = sections.table[sections.header.e_shstrndx];
  name_table.sh_offset = out.size();
  name_table.sh_size = names.size();
  out += names;
  pad_to(out, 8);
  sections.header.e_shoff = out.size();
  sections.header.e_shnum = static_cast<Elf64_Half>(sections.table.size());
  if (sections.table.size() >= SHN_LORESERVE) return malformed(say("it has too many sections"));
  out.append(reinterpret_cast<const char*>(sections.table.data()),
             sections.table.size() * sizeof(Elf64_Shdr));
  std::memcpy(out.data(), &sections.header, sizeof(sections.header));
  return out;
}

Result<std::string> section_bytes(std::string_view elf, std::string_view name) {
  SCANKIT_TRY(auto sections, read_sections(elf));
  for (const Elf64_Shdr& section : sections.table)
    if (sections.name(section) == name) return contents(elf, section);
  return Error{Errc::NotFound, say("the file has no section {}", name), ""};
}

Result<std::string> assemble_module(std::string_view host_module, const std::vector<BuiltCode>& images,
                                    std::string_view manifest) {
  for (const BuiltCode& image : images)
    if (image.unit.size() > 63 || image.sha256.size() != 64)
      return Error{Errc::InvalidArgument, say("unit name \"{}\" is longer than 63 bytes", image.unit), ""};
  SCANKIT_TRY(auto fatbin, write_fatbin(images));
  // The index contains absolute offsets, so the place of the fatbin must be known before it is
  // appended: directly behind the file, aligned. append_sections() computes the same place, and the
  // check below compares both.
  constexpr std::uint64_t kFatbinAlignment = 64;
  const std::uint64_t start =
      (host_module.size() + kFatbinAlignment - 1) / kFatbinAlignment * kFatbinAlignment;
  std::string index = "SKIMAGE1";
  append_little_endian<std::uint32_t>(index, static_cast<std::uint32_t>(images.size()));
  append_little_endian<std::uint32_t>(index, 128);
  for (std::size_t i = 0; i < images.size(); ++i)
    append_index_entry(index, images[i], start + fatbin.payloads[i], start);
  std::vector<std::uint64_t> offsets;
  auto out = append_sections(host_module,
                             {{".nv_fatbin", std::move(fatbin.bytes), kFatbinAlignment},
                              {".scankit.images", std::move(index), 8},
                              {".scankit.manifest", std::string(manifest), 8}},
                             offsets);
  if (out && offsets[0] != start)
    return Error{Errc::Malformed, say("the fatbin is not where its index says"), ""};
  return out;
}

}  // namespace scankit
