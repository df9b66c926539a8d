// SPDX-License-Identifier: Apache-2.0
#include "builder/module/assemble.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "builder/compile/compile.h"
#include "builder/module/image_index.h"
#include "builder/toolchain/toolchain.h"
#include "doctor/base/files.h"
#include "doctor/base/machine.h"
#include "doctor/base/say.h"
#include "doctor/base/version.h"
#include "doctor/elf/bytes.h"
#include "doctor/elf/fatbin.h"
#include "doctor/elf/library.h"

namespace scankit::module {
namespace {

Error malformed(const std::string& what) {
  return {Errc::Malformed, message("the host module is not a complete 64-bit ELF file: {}", what), ""};
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

}  // namespace

Result<std::string> append_sections(std::string_view elf, const std::vector<ModuleSection>& added,
                                    std::vector<std::uint64_t>& offsets) {
  SCANKIT_TRY(auto sections, read_sections(elf));
  for (const Elf64_Shdr& old : sections.table)
    for (const ModuleSection& section : added)
      if (sections.name(old) == section.name)
        return Error{Errc::Conflict, message("the host module already has a section {}", section.name),
                     message("start from the module as it was built, without device images")};
  // The new sections lack SHF_ALLOC and an address: no segment covers them, and nothing maps them.
  std::string out(elf);
  std::string names = sections.names;
  for (const ModuleSection& section : added) {
    elf::pad_to(out, section.alignment);
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
  elf::pad_to(out, 8);
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
  return Error{Errc::NotFound, message("the file has no section {}", name), ""};
}

Result<std::string> assemble_module(std::string_view host_module,
                                    const std::vector<compile::BuiltCode>& images,
                                    std::string_view manifest) {
  for (const compile::BuiltCode& image : images)
    if (image.unit.size() > 63)
      return Error{Errc::InvalidArgument, message("unit name \"{}\" is longer than 63 bytes", image.unit),
                   ""};
  SCANKIT_TRY(auto fatbin, compile::write_fatbin(images));
  // The index contains absolute offsets, so the place of the fatbin must be known before it is
  // appended: directly behind the file, aligned. append_sections() computes the same place, and the
  // check below compares both.
  constexpr std::uint64_t kFatbinAlignment = 64;
  const std::uint64_t start =
      (host_module.size() + kFatbinAlignment - 1) / kFatbinAlignment * kFatbinAlignment;
  std::vector<IndexedImage> indexed;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const auto& [offset, size, full_size] = fatbin.payloads[i];
    indexed.push_back({images[i].unit, images[i].target, start + offset, size, full_size,
                       sha256_hex(std::string_view(fatbin.bytes).substr(offset, size))});
  }
  std::vector<std::uint64_t> offsets;
  auto out = append_sections(host_module,
                             {{".nv_fatbin", std::move(fatbin.bytes), kFatbinAlignment},
                              {".scankit.images", write_image_index(indexed, start), 8},
                              {".scankit.manifest", std::string(manifest), 8}},
                             offsets);
  if (out && offsets[0] != start)
    return Error{Errc::Malformed, message("the fatbin is not where its index says"), ""};
  return out;
}

namespace {

// manylinux_2_17 (PEP 600), and what glibc has as separate files before 2.34.
constexpr std::array<const char*, 5> kAllowedLibraries = {"libc.so.6", "libpthread.so.0", "libdl.so.2",
                                                          "libm.so.6", kLoader};
constexpr const char* kGlibcFloor = "2.17";

Error broken(const std::string& path, const std::string& what) {
  return {Errc::Malformed, message("the built module {} failed its checks: {}", path, what),
          message("nothing was installed; please report this with the output of `scankit build --explain`")};
}

// The universal module must load with every glibc from the floor on: DT_NEEDED and the version needs say what
// the loader will look for.
Result<void> check_loader_facts(const elf::ElfLibrary& library) {
  for (const std::string& needed : library.dynamic.needed)
    if (std::find(kAllowedLibraries.begin(), kAllowedLibraries.end(), needed) == kAllowedLibraries.end())
      return broken(library.path, say("it needs {}", needed));
  for (const elf::VersionNeed& need : library.symbols.versions().needs()) {
    if (!need.name.starts_with("GLIBC_")) return broken(library.path, say("it needs version {}", need.name));
    const auto version = Version::parse(need.name.substr(6));
    if (!version || *version > *Version::parse(kGlibcFloor))
      return broken(library.path, say("it needs {}, newer than {}", need.name, kGlibcFloor));
  }
  return {};
}

// Every name that the dynamic symbol table defines for others; PyInit_<module> must be the only one. Read by
// the section .dynsym, since through the hash table a name can only be looked up, not listed.
Result<void> check_exports(const std::string& path, std::string_view file, const std::string& module) {
  const auto table = section_bytes(file, ".dynsym");
  if (!table) return table.error();
  const auto names = section_bytes(file, ".dynstr");
  if (!names) return names.error();
  const std::string init = "PyInit_" + module;
  bool found = false;
  for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= table->size(); at += sizeof(Elf64_Sym)) {
    Elf64_Sym symbol;
    std::memcpy(&symbol, table->data() + at, sizeof(symbol));
    if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_BIND(symbol.st_info) == STB_LOCAL) continue;
    if (symbol.st_name >= names->size())
      return broken(path, say("a symbol's name is outside the string "
                              "table"));
    const std::string name = names->c_str() + symbol.st_name;
    if (name != init) return broken(path, say("it exports {}", name));
    found = true;
  }
  return found ? Result<void>() : broken(path, say("it does not export {}", init));
}

// A module for old drivers contains only what they read: the cubin ABI version and the PTX ISA of the
// compiler that was chosen for them. Images that came with scankit name no compiler and are not
// checked again.
Result<void> check_cubin_abi(const std::string& path, const compile::BuiltCode& image,
                             std::string_view payload) {
  if (image.compiler.empty()) return {};
  if (image.target.ptx) {
    SCANKIT_TRY(const elf::PtxFacts facts, elf::ptx_facts(payload));
    const std::string isa = std::to_string(facts.isa_major) + "." + std::to_string(facts.isa_minor);
    if (toolchain::ptx_fits(isa, image.compiler)) return {};
    return broken(path, say("{} for {} is PTX {}, which is newer than CUDA {}", image.unit,
                            image.target.name(), isa, image.compiler));
  }
  SCANKIT_TRY(const elf::CubinFacts facts, elf::cubin_facts(payload));
  const unsigned wanted = toolchain::cubin_abi_of(image.compiler, image.target.sm);
  if (facts.abi_version == wanted) return {};
  return broken(path, say("{} for {} has cubin ABI version {}, not {}", image.unit, image.target.name(),
                          facts.abi_version, wanted));
}

// The container as the doctor and cuobjdump read it, and what each payload says about itself. Both must name
// the architecture that was asked for, in the order of the promise.
Result<void> check_fatbin(const elf::ElfLibrary& library, const ModulePromise& promise) {
  const auto entries = elf::find_device_images(library.image);
  if (!entries) return entries.error();
  if (entries->size() != promise.images.size())
    return broken(library.path,
                  say_n(entries->size(), "it contains {} image instead of {}",
                        "it contains {} images instead of {}", entries->size(), promise.images.size()));
  for (std::size_t i = 0; i < entries->size(); ++i) {
    const Target& target = promise.images[i].target;
    const auto payload = elf::fatbin_payload(library.image.file(), (*entries)[i]);
    if (!payload) return payload.error();
    unsigned sm = 0;
    if (target.ptx) {
      const auto facts = elf::ptx_facts(*payload);
      if (!facts) return facts.error();
      sm = facts->sm;
    } else {
      const auto facts = elf::cubin_facts(*payload);
      if (!facts) return facts.error();
      sm = facts->sm;
    }
    if ((*entries)[i].kind != (target.ptx ? "ptx" : "cubin") || (*entries)[i].sm != target.sm ||
        sm != target.sm)
      return broken(library.path, say("image {} is a {} for sm_{}, not one for {}", i, (*entries)[i].kind, sm,
                                      target.name()));
    SCANKIT_CHECK(check_cubin_abi(library.path, promise.images[i], *payload));
  }
  return {};
}

// Follows the index as the module's loader does: absolute offset, size, hash, and what is unpacked.
Result<void> check_index(const std::string& path, std::string_view file, const ModulePromise& promise) {
  SCANKIT_TRY(const auto index, read_image_index(file));
  if (index.size() != promise.images.size())
    return broken(path, say("the length of its image index differs"));
  for (std::size_t i = 0; i < index.size(); ++i) {
    const compile::BuiltCode& image = promise.images[i];
    if (index[i].target.ptx != image.target.ptx || index[i].target.sm != image.target.sm ||
        index[i].unit != image.unit)
      return broken(path, say("image {} is not {} for {}", i, image.unit, image.target.name()));
    const auto bytes = image_bytes(file, index[i]);
    if (!bytes || sha256_hex(*bytes) != image.sha256 ||
        sha256_hex(file.substr(index[i].offset, index[i].size)) != index[i].sha256)
      return broken(path, say("the content of image {} for {} differs", image.unit, image.target.name()));
  }
  return {};
}

}  // namespace

Result<void> assert_module(const Host& host, const std::string& path, const ModulePromise& promise) {
  SCANKIT_TRY(const auto library, elf::open_library(host, path));
  if (!promise.for_one_torch) SCANKIT_CHECK(check_loader_facts(*library));
  SCANKIT_TRY(const std::string file, host.read_file(path, 512u << 20));
  SCANKIT_CHECK(check_fatbin(*library, promise));
  SCANKIT_CHECK(check_exports(path, file, promise.module));
  return check_index(path, file, promise);
}

}  // namespace scankit::module
