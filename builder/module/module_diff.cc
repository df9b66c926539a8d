// SPDX-License-Identifier: Apache-2.0
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <sstream>

#include "builder/module/assemble.h"
#include "builder/module/image_index.h"
#include "builder/module/target.h"
#include "doctor/base/say.h"

namespace scankit::module {
namespace {

// Reads `count` structures at `offset`; an empty table if they are not all inside the file. The files are
// ours or a compiler's, but a damaged one must not end the comparison.
template <class T>
std::vector<T> table_at(std::string_view bytes, std::uint64_t offset, std::uint64_t count) {
  if (offset > bytes.size() || count > (bytes.size() - offset) / sizeof(T)) return {};
  std::vector<T> table(count);
  if (count > 0) std::memcpy(table.data(), bytes.data() + offset, count * sizeof(T));
  return table;
}

// The same for a range of bytes: empty if it is not all inside.
std::string_view piece(std::string_view bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) return {};
  return bytes.substr(offset, size);
}

std::string name_at(std::string_view names, std::uint64_t offset) {
  if (offset >= names.size()) return "";
  const std::string_view rest = names.substr(offset);
  return std::string(rest.substr(0, rest.find('\0')));
}

// One section: its name, its index in the table, its address, and its bytes in the file.
struct Part {
  std::string name;
  std::size_t index = 0;
  std::uint64_t address = 0;
  std::string_view bytes;
};

// Views into `file`, which must outlive it. `parts` leaves out section 0, the null entry.
struct Elf {
  std::string_view file;
  std::vector<Elf64_Shdr> headers;
  std::vector<Part> parts;

  const Part* find(const std::string& name) const {
    const auto at =
        std::find_if(parts.begin(), parts.end(), [&](const Part& part) { return part.name == name; });
    return at == parts.end() ? nullptr : &*at;
  }
};

std::optional<Elf> read_elf(std::string_view file) {
  const auto header = table_at<Elf64_Ehdr>(file, 0, 1);
  if (header.empty() || std::memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0 ||
      header[0].e_ident[EI_CLASS] != ELFCLASS64 || header[0].e_shentsize != sizeof(Elf64_Shdr))
    return std::nullopt;
  Elf elf{file, table_at<Elf64_Shdr>(file, header[0].e_shoff, header[0].e_shnum), {}};
  if (header[0].e_shstrndx >= elf.headers.size()) return std::nullopt;
  const Elf64_Shdr& named = elf.headers[header[0].e_shstrndx];
  const std::string_view names = piece(file, named.sh_offset, named.sh_size);
  for (std::size_t i = 1; i < elf.headers.size(); ++i) {
    const Elf64_Shdr& section = elf.headers[i];
    const bool filled = section.sh_type != SHT_NOBITS;
    elf.parts.push_back({name_at(names, section.sh_name), i, section.sh_addr,
                         filled ? piece(file, section.sh_offset, section.sh_size) : std::string_view()});
  }
  return elf;
}

// The symbol whose range covers the byte at `offset` of the section; "" if no symbol does. st_value
// is an address in a linked file and an offset in a relocatable one, whose sections have address 0
// (gABI, Symbol Table).
std::string symbol_at(const Elf& elf, const Part& part, std::uint64_t offset) {
  for (const Elf64_Shdr& table : elf.headers) {
    if (table.sh_type != SHT_SYMTAB && table.sh_type != SHT_DYNSYM) continue;
    if (table.sh_link >= elf.headers.size()) continue;
    const Elf64_Shdr& named = elf.headers[table.sh_link];
    const std::string_view names = piece(elf.file, named.sh_offset, named.sh_size);
    for (const Elf64_Sym& symbol :
         table_at<Elf64_Sym>(elf.file, table.sh_offset, table.sh_size / sizeof(Elf64_Sym))) {
      if (symbol.st_shndx != part.index || ELF64_ST_TYPE(symbol.st_info) == STT_SECTION) continue;
      const std::uint64_t at = part.address + offset;
      if (symbol.st_value <= at && at - symbol.st_value < symbol.st_size)
        return name_at(names, symbol.st_name);
    }
  }
  return "";
}

// The length of the shorter one if it is the beginning of the other.
std::size_t first_differing_byte(std::string_view a, std::string_view b) {
  const auto at = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(at.first - a.begin());
}

std::string difference_in_words(const std::string& where, const Elf& elf, const Part& a, const Part& b) {
  const std::size_t at = first_differing_byte(a.bytes, b.bytes);
  const std::string symbol = symbol_at(elf, a, at);
  if (symbol.empty())
    return say("{}: section {} differs from byte {:#x} on ({} and {} bytes)", where, a.name, at,
               a.bytes.size(), b.bytes.size());
  return say("{}: section {} differs from byte {:#x} on ({} and {} bytes), in symbol {}", where, a.name, at,
             a.bytes.size(), b.bytes.size(), symbol);
}

}  // namespace

std::vector<std::string> elf_differences(const std::string& where, std::string_view first,
                                         std::string_view second, const std::vector<std::string>& skipped) {
  std::vector<std::string> lines;
  bool skipped_one = false;
  if (first == second) return lines;
  const auto a = read_elf(first), b = read_elf(second);
  if (!a || !b) {
    lines.push_back(say("{}: differs from byte {:#x} on ({} and {} bytes)", where,
                        first_differing_byte(first, second), first.size(), second.size()));
    return lines;
  }
  for (const Part& part : a->parts) {
    const Part* other = b->find(part.name);
    const bool skip = std::find(skipped.begin(), skipped.end(), part.name) != skipped.end();
    if (skip && other != nullptr)
      skipped_one = skipped_one || other->bytes != part.bytes;
    else if (other == nullptr)
      lines.push_back(say("{}: section {} is in the first build only", where, part.name));
    else if (other->bytes != part.bytes)
      lines.push_back(difference_in_words(where, *a, part, *other));
  }
  for (const Part& part : b->parts)
    if (a->find(part.name) == nullptr)
      lines.push_back(say("{}: section {} is in the second build only", where, part.name));
  if (lines.empty() && !skipped_one)
    lines.push_back(
        say("{}: the sections are the same; headers or bytes between sections differ from byte {:#x} on",
            where, first_differing_byte(first, second)));
  return lines;
}

namespace {

// One image of a module, unpacked.
struct ComparedImage {
  std::string unit, target;
  bool ptx = false;
  std::string bytes;
};

// By the module's own index; empty if it has none that can be read.
std::vector<ComparedImage> images_of(std::string_view file) {
  std::vector<ComparedImage> images;
  const auto index = read_image_index(file);
  if (!index) return images;
  for (const IndexedImage& image : *index) {
    auto bytes = image_bytes(file, image);
    if (!bytes) return {};
    images.push_back({image.unit, image.target.name(), image.target.ptx, std::move(*bytes)});
  }
  return images;
}

// The first line that differs, of a text of two builds.
std::string text_difference(const std::string& where, std::string_view first, std::string_view second) {
  constexpr std::size_t kShown = 160;
  std::istringstream a{std::string(first)}, b{std::string(second)};
  std::string of_a, of_b;
  for (std::size_t number = 1;; ++number) {
    const bool more_a = static_cast<bool>(std::getline(a, of_a));
    const bool more_b = static_cast<bool>(std::getline(b, of_b));
    if (!more_a && !more_b) break;
    if (!more_a) of_a.clear();
    if (!more_b) of_b.clear();
    if (of_a != of_b || more_a != more_b)
      return say("{}: line {} is \"{}\" in the first build and \"{}\" in the second", where, number,
                 of_a.substr(0, kShown), of_b.substr(0, kShown));
  }
  return say("{}: the line endings differ", where);
}

// PTX is compared as text, line by line; a cubin is an ELF file and compared by sections.
void add_image(const ComparedImage& a, const ComparedImage& b, std::vector<std::string>& lines) {
  if (a.bytes == b.bytes && a.unit == b.unit && a.target == b.target) return;
  const std::string where = say("image {} for {}", a.unit, a.target);
  if (a.unit != b.unit || a.target != b.target) {
    lines.push_back(say("{}: the second build has {} for {} instead", where, b.unit, b.target));
  } else if (a.ptx) {
    lines.push_back(text_difference(where, a.bytes, b.bytes));
  } else {
    for (std::string& line : elf_differences(where, a.bytes, b.bytes)) lines.push_back(std::move(line));
  }
}

}  // namespace

std::vector<std::string> module_differences(std::string_view first, std::string_view second) {
  std::vector<std::string> lines;
  if (first == second) return lines;
  const auto a = images_of(first), b = images_of(second);
  if (a.size() != b.size()) lines.push_back(say("the builds contain {} and {} images", a.size(), b.size()));
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) add_image(a[i], b[i], lines);
  const auto one = section_bytes(first, ".scankit.manifest"),
             two = section_bytes(second, ".scankit.manifest");
  if (lines.empty() && one && two && *one != *two)
    lines.push_back(text_difference(say("the manifest"), *one, *two));
  // We write these three from the images, whose differences say it better.
  std::vector<std::string> said;
  if (!lines.empty()) said = {".nv_fatbin", ".scankit.images", ".scankit.manifest"};
  for (std::string& line : elf_differences(say("the module"), first, second, said))
    lines.push_back(std::move(line));
  return lines;
}

}  // namespace scankit::module
