// SPDX-License-Identifier: Apache-2.0
#include "doctor/elf/dynamic.h"

#include <elf.h>

#include <algorithm>

#include "doctor/base/say.h"

namespace scankit {
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
    return Error{Errc::Malformed, say("more than {} needed libraries", kNeededLimit), ""};
  for (const std::uint64_t index : raw.needed) {
    SCANKIT_TRY(std::string name, dynamic.strings.at(index));
    if (name.empty()) return Error{Errc::Malformed, say("the name of a needed library is empty"), ""};
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
  if (index >= size_) return Error{Errc::Malformed, say("a name is outside the string table"), ""};
  const auto offset = checked_add(offset_, index);
  if (!offset) return Error{Errc::Malformed, say("a name is outside the file"), ""};
  return file_.c_string(*offset, std::min<std::uint64_t>(size_ - index, 64u << 10));
}

Result<Bytes> StringTable::piece(std::uint64_t index, std::uint64_t length) const {
  if (index > size_ || length > size_ - index)
    return Error{Errc::Malformed, say("a part is outside the string table"), ""};
  const auto offset = checked_add(offset_, index);
  if (!offset) return Error{Errc::Malformed, say("a part is outside the file"), ""};
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
    return Error{Errc::Malformed, say("dynamic symbols of an unknown size"), ""};
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

}  // namespace scankit
