// SPDX-License-Identifier: Apache-2.0
#include <elf.h>

#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/elf/symbols.h"

namespace scankit::elf {
namespace {

constexpr std::size_t kNeededLimit = 4096;  // a bound for hostile files

// The entries that are offsets into the string table. The gABI ("Dynamic Section") fixes no order of the
// tags, so DT_STRTAB may come last, and the names are read when the whole table is known.
struct Raw {
  std::vector<std::uint64_t> needed;
  std::uint64_t soname = 0, rpath = 0, runpath = 0, string_size = 0, symbol_entry = sizeof(Elf64_Sym);
};

// Takes the entries that name something, and the flags; take_address_entry() takes the addresses of tables.
// Both pass over tags that they do not know.
void take_name_entry(const Elf64_Dyn& entry, Dynamic& dynamic, Raw& raw) {
  switch (entry.d_tag) {
    case DT_NEEDED:
      raw.needed.push_back(entry.d_un.d_val);
      break;
    case DT_SONAME:
      raw.soname = entry.d_un.d_val, dynamic.has_soname = true;
      break;
    case DT_RPATH:
      raw.rpath = entry.d_un.d_val, dynamic.has_rpath = true;
      break;
    case DT_RUNPATH:
      raw.runpath = entry.d_un.d_val, dynamic.has_runpath = true;
      break;
    case DT_STRSZ:
      raw.string_size = entry.d_un.d_val;
      break;
    case DT_SYMENT:
      raw.symbol_entry = entry.d_un.d_val;
      break;
    case DT_SYMBOLIC:
      dynamic.symbolic = true;
      break;
    case DT_FLAGS:
      dynamic.symbolic |= (entry.d_un.d_val & DF_SYMBOLIC) != 0;
      break;
    case DT_FLAGS_1:
      dynamic.no_default_lib = (entry.d_un.d_val & DF_1_NODEFLIB) != 0;
      break;
    default:
      break;
  }
}

void take_address_entry(const Elf64_Dyn& entry, Dynamic& dynamic) {
  const std::uint64_t value = entry.d_un.d_val;
  switch (entry.d_tag) {
    case DT_STRTAB:
      dynamic.string_address = value;
      break;
    case DT_SYMTAB:
      dynamic.symbols = value;
      break;
    case DT_GNU_HASH:
      dynamic.gnu_hash = value;
      break;
    case DT_HASH:
      dynamic.sysv_hash = value;
      break;
    case DT_VERSYM:
      dynamic.version_symbols = value;
      break;
    case DT_VERNEED:
      dynamic.version_needs = value;
      break;
    case DT_VERNEEDNUM:
      dynamic.version_need_count = value;
      break;
    case DT_VERDEF:
      dynamic.version_defs = value;
      break;
    case DT_VERDEFNUM:
      dynamic.version_def_count = value;
      break;
    default:
      break;
  }
}

// One name outside the string table makes the whole file malformed.
Result<void> read_names(const Raw& raw, Dynamic& dynamic) {
  if (raw.needed.size() > kNeededLimit)
    return Error{Errc::Malformed, message("more than {} needed libraries", kNeededLimit), ""};
  for (const std::uint64_t index : raw.needed) {
    SCANKIT_TRY(std::string name, dynamic.strings.at(index));
    if (name.empty()) return Error{Errc::Malformed, message("the name of a needed library is empty"), ""};
    dynamic.needed.push_back(std::move(name));
  }
  if (dynamic.has_soname) {
    SCANKIT_TRY(dynamic.soname, dynamic.strings.at(raw.soname));
  }
  if (dynamic.has_rpath) {
    SCANKIT_TRY(dynamic.rpath, dynamic.strings.at(raw.rpath));
  }
  if (dynamic.has_runpath) {
    SCANKIT_TRY(dynamic.runpath, dynamic.strings.at(raw.runpath));
  }
  return {};
}

std::uint64_t padded(std::uint64_t size) { return (size + 3) & ~std::uint64_t{3}; }

// Notes are a size-prefixed list (gABI, "Note Section"); the piece is in memory, so 32-bit sizes cannot wrap.
std::string build_id_in(const Bytes& notes) {
  std::uint64_t at = 0;
  for (;;) {
    const auto header = notes.read<Elf64_Nhdr>(at);
    if (!header) return "";
    const std::uint64_t name = at + sizeof(Elf64_Nhdr);
    const std::uint64_t value = name + padded(header->n_namesz);
    if (header->n_type == NT_GNU_BUILD_ID && header->n_namesz == 4 && header->n_descsz <= 64) {
      const auto owner = notes.c_string(name);
      const auto id = notes.slice(value, header->n_descsz);
      if (owner && *owner == "GNU" && id) {
        std::string hex;
        for (const char c : id->text()) {
          constexpr const char* kDigits = "0123456789abcdef";
          hex += kDigits[(static_cast<unsigned char>(c) >> 4) & 15];
          hex += kDigits[static_cast<unsigned char>(c) & 15];
        }
        return hex;
      }
    }
    at = value + padded(header->n_descsz);
  }
}

}  // namespace

Result<std::string> StringTable::at(std::uint64_t index) const {
  if (index >= size_) return Error{Errc::Malformed, message("a name is outside the string table"), ""};
  const auto offset = checked_add(offset_, index);
  if (!offset) return Error{Errc::Malformed, message("a name is outside the file"), ""};
  return file_.c_string(*offset, std::min<std::uint64_t>(size_ - index, 64u << 10));
}

Result<Bytes> StringTable::piece(std::uint64_t index, std::uint64_t length) const {
  if (index > size_ || length > size_ - index)
    return Error{Errc::Malformed, message("a part is outside the string table"), ""};
  const auto offset = checked_add(offset_, index);
  if (!offset) return Error{Errc::Malformed, message("a part is outside the file"), ""};
  return file_.slice(*offset, length);
}

// An image without PT_DYNAMIC is a success with `present` false. Without DT_STRTAB the string table stays
// empty, and every entry that refers to it is an error.
Result<Dynamic> read_dynamic(const Image& image) {
  Dynamic dynamic;
  const auto segment = image.segment(PT_DYNAMIC);
  if (!segment) return dynamic;
  dynamic.present = true;
  SCANKIT_TRY(const Bytes table, image.file().slice(segment->offset, segment->file_size, 1u << 20));
  Raw raw;
  for (std::uint64_t i = 0;; ++i) {
    const auto entry = table.element<Elf64_Dyn>(i);
    if (!entry || entry->d_tag == DT_NULL) break;
    take_name_entry(*entry, dynamic, raw);
    take_address_entry(*entry, dynamic);
  }
  // Everything that indexes the symbol table multiplies by sizeof(Elf64_Sym).
  if (raw.symbol_entry != sizeof(Elf64_Sym))
    return Error{Errc::Malformed, message("dynamic symbols of an unknown size"), ""};
  if (dynamic.string_address != 0) {
    SCANKIT_TRY(const std::uint64_t offset, image.offset_of(dynamic.string_address, raw.string_size));
    dynamic.strings = StringTable(image.file(), offset, raw.string_size);
  }
  SCANKIT_CHECK(read_names(raw, dynamic));
  return dynamic;
}

// By the note segments and not by the section .note.gnu.build-id: section headers may be gone.
std::string read_build_id(const Image& image) {
  for (const Segment& s : image.segments()) {
    if (s.type != PT_NOTE) continue;
    const auto notes = image.file().slice(s.offset, s.file_size, 1u << 20);
    if (!notes) continue;
    if (std::string id = build_id_in(*notes); !id.empty()) return id;
  }
  return "";
}

std::string read_interpreter(const Image& image) {
  const auto segment = image.segment(PT_INTERP);
  if (!segment) return "";
  const auto bytes = image.file().slice(segment->offset, segment->file_size, 4096);
  return bytes ? std::string(bytes->c_string(0).value_or("")) : "";
}

namespace {

// Entries link to each other by offsets of the file; only a limit ends a hostile list.
constexpr std::uint64_t kVersionLimit = 1u << 16;

template <class T>
Result<T> entry_at(const Image& image, std::uint64_t address) {
  SCANKIT_TRY(const Bytes bytes, image.at_address(address, sizeof(T)));
  return *bytes.read<T>(0);
}

Result<std::uint64_t> step(std::uint64_t address, std::uint64_t by) {
  const auto next = checked_add(address, by);
  if (!next) return Error{Errc::Malformed, message("a version entry points outside the file"), ""};
  return *next;
}

// A Verneed is a file, its Vernaux entries are the versions wanted of it. vna_other is the index by which
// .gnu.version refers to one; its bit 15 means hidden (LSB Core, "Symbol Versioning").
Result<void> read_need_names(const Image& image, const Dynamic& dynamic, std::uint64_t address,
                             const Elf64_Verneed& need, std::vector<VersionNeed>& needs) {
  SCANKIT_TRY(const std::string file, dynamic.strings.at(need.vn_file));
  SCANKIT_TRY(std::uint64_t at, step(address, need.vn_aux));
  for (unsigned i = 0; i < need.vn_cnt; ++i) {
    if (needs.size() >= kVersionLimit) return Error{Errc::Malformed, message("too many version needs"), ""};
    SCANKIT_TRY(const Elf64_Vernaux aux, entry_at<Elf64_Vernaux>(image, at));
    SCANKIT_TRY(std::string name, dynamic.strings.at(aux.vna_name));
    needs.push_back({file, std::move(name), static_cast<std::uint16_t>(aux.vna_other & 0x7fff),
                     (aux.vna_flags & VER_FLG_WEAK) != 0, (aux.vna_other & 0x8000) != 0});
    if (aux.vna_next == 0) break;
    SCANKIT_TRY(at, step(at, aux.vna_next));
  }
  return {};
}

Result<std::vector<VersionNeed>> read_needs(const Image& image, const Dynamic& dynamic) {
  std::vector<VersionNeed> needs;
  std::uint64_t at = dynamic.version_needs;
  for (std::uint64_t i = 0; at != 0 && i < std::min(dynamic.version_need_count, kVersionLimit); ++i) {
    SCANKIT_TRY(const Elf64_Verneed need, entry_at<Elf64_Verneed>(image, at));
    SCANKIT_CHECK(read_need_names(image, dynamic, at, need, needs));
    if (need.vn_next == 0) break;
    SCANKIT_TRY(at, step(at, need.vn_next));
  }
  return needs;
}

// vd_ndx is the index by which .gnu.version refers to the definition.
Result<std::vector<VersionDefinition>> read_definitions(const Image& image, const Dynamic& dynamic) {
  std::vector<VersionDefinition> definitions;
  std::uint64_t at = dynamic.version_defs;
  for (std::uint64_t i = 0; at != 0 && i < std::min(dynamic.version_def_count, kVersionLimit); ++i) {
    SCANKIT_TRY(const Elf64_Verdef def, entry_at<Elf64_Verdef>(image, at));
    SCANKIT_TRY(const std::uint64_t first, step(at, def.vd_aux));
    SCANKIT_TRY(const Elf64_Verdaux aux,
                entry_at<Elf64_Verdaux>(image, first));  // the others are its parents
    SCANKIT_TRY(std::string name, dynamic.strings.at(aux.vda_name));
    definitions.push_back({std::move(name), static_cast<std::uint16_t>(def.vd_ndx & 0x7fff),
                           (def.vd_flags & VER_FLG_BASE) != 0});
    if (def.vd_next == 0) break;
    SCANKIT_TRY(at, step(at, def.vd_next));
  }
  return definitions;
}

}  // namespace

Result<Versions> Versions::read(const Image& image, const Dynamic& dynamic) {
  Versions versions;
  versions.symbol_versions_ = dynamic.version_symbols;
  versions.has_definitions_ = dynamic.version_defs != 0;
  SCANKIT_TRY(versions.needs_, read_needs(image, dynamic));
  SCANKIT_TRY(versions.definitions_, read_definitions(image, dynamic));
  return versions;
}

// One u16 for each entry of .dynsym. An entry that cannot be read counts as unversioned.
std::uint16_t Versions::of_symbol(const Image& image, std::uint32_t symbol) const {
  if (symbol_versions_ == 0) return VER_NDX_GLOBAL;
  const auto address = checked_add(symbol_versions_, std::uint64_t{symbol} * sizeof(Elf64_Half));
  if (!address) return VER_NDX_GLOBAL;
  const auto bytes = image.at_address(*address, sizeof(Elf64_Half));
  return bytes ? bytes->read<Elf64_Half>(0).value_or(VER_NDX_GLOBAL) : VER_NDX_GLOBAL;
}

const VersionNeed* Versions::need(std::uint16_t index) const {
  const auto it = std::ranges::find(needs_, index, &VersionNeed::index);
  return it == needs_.end() ? nullptr : &*it;
}

// A definition that is marked base names the file and matches no version.
std::string Versions::definition_name(std::uint16_t index) const {
  for (const VersionDefinition& d : definitions_)
    if (d.index == index && !d.base) return d.name;
  return "";
}

bool Versions::defines(const std::string& name) const {
  return std::ranges::any_of(definitions_,
                             [&](const VersionDefinition& d) { return !d.base && d.name == name; });
}

}  // namespace scankit::elf
