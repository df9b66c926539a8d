// SPDX-License-Identifier: Apache-2.0
#include "doctor/elf/image.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "doctor/base/say.h"

namespace scankit::elf {
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
  if (std::memcmp(ident.bytes, ELFMAG, SELFMAG) != 0) return malformed_elf(message("not an ELF file"));
  const unsigned width = ident.bytes[EI_CLASS], order = ident.bytes[EI_DATA];
  if ((width != ELFCLASS32 && width != ELFCLASS64) || (order != ELFDATA2LSB && order != ELFDATA2MSB))
    return malformed_elf(message("ELF of an unknown class or byte order"));
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
                 message("a file for {}, which is not supported", machine_name(image.identity_)), ""};
  SCANKIT_TRY(const Elf64_Ehdr header, image.file_.read<Elf64_Ehdr>(0));
  image.section_offset_ = header.e_shoff;
  image.section_count_ = header.e_shnum;
  image.section_entry_ = header.e_shentsize;
  image.section_names_ = header.e_shstrndx;
  if (header.e_phnum == 0) return image;
  if (header.e_phentsize != sizeof(Elf64_Phdr))
    return malformed_elf(message("program headers of an unknown size"));
  SCANKIT_TRY(const Bytes table,
              image.file_.slice(header.e_phoff, std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr)));
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    const auto entry = table.element<Elf64_Phdr>(i);
    if (!entry) return malformed_elf(message("the program headers are truncated"));
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

bool requests_executable_stack(const Image& image) {
  const auto stack = image.segment(PT_GNU_STACK);
  return !stack || (stack->flags & PF_X) != 0;
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
  return malformed_elf(message("address {} is not in a loaded part of the file", address));
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

namespace {

constexpr std::uint64_t kTextPiece = 1u << 20, kLongestText = 512, kScanLimit = 64u << 20;  // bytes

struct Range {
  std::uint64_t offset, size;
};

// Where compilers put string literals. Without section headers everything that is mapped is searched.
std::vector<Range> constant_data(const Image& image) {
  std::vector<Range> ranges;
  for (const Section& s : image.sections())
    if (s.type == SHT_PROGBITS && (s.name.starts_with(".rodata") || s.name.starts_with(".data")))
      ranges.push_back({s.offset, s.size});
  if (ranges.empty())
    for (const Segment& s : image.segments())
      if (s.type == PT_LOAD) ranges.push_back({s.offset, s.file_size});
  return ranges;
}

// Takes the texts that begin in the first kTextPiece bytes. The rest of the piece belongs to the next one
// too, and is there for the end of the last text.
void take_texts(const Bytes& piece, std::string_view start, std::size_t most,
                std::vector<std::string>& texts) {
  const std::string_view all = piece.text();
  for (auto at = all.find(start); at < kTextPiece && texts.size() < most; at = all.find(start, at + 1)) {
    // Not piece.c_string(): a file of nothing but marks would be searched for its NUL again and again.
    const auto text = all.substr(at, kLongestText + 1);
    if (const auto end = text.find('\0'); end != std::string_view::npos)
      texts.emplace_back(text.substr(0, end));
  }
}

}  // namespace

std::vector<std::string> find_texts(const Image& image, std::string_view start, std::size_t most) {
  std::vector<std::string> texts;
  std::uint64_t scanned = 0;
  for (const Range& range : constant_data(image))
    for (std::uint64_t at = 0; at < range.size && scanned < kScanLimit && texts.size() < most;
         at += kTextPiece, scanned += kTextPiece) {
      const auto piece =
          image.file().slice(range.offset + at, std::min(kTextPiece + kLongestText, range.size - at));
      if (!piece) break;
      take_texts(*piece, start, most, texts);
    }
  return texts;
}

namespace {

using namespace std::string_view_literals;

bool starts_with_ignoring_case(std::string_view text, std::string_view lower) {
  if (text.size() < lower.size()) return false;
  return std::equal(lower.begin(), lower.end(), text.begin(),
                    [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
}

// `state` is a word of FileState::state.
struct Signature {
  std::string_view magic, state, detail;
};
// Where each format's first bytes are fixed: zip APPNOTE 4.3.7, PE/COFF "MZ", Mach-O <mach-o/loader.h>, gzip
// RFC 1952, ar(5), git-lfs docs/spec.md.
constexpr std::array kSignatures{
    Signature{"version https://git-lfs"sv, "git-lfs",
              sayable("a git-lfs pointer: the file itself was never fetched")},
    Signature{"PK\x03\x04"sv, "not-elf", sayable("a zip archive or wheel, not the library inside it")},
    Signature{"MZ"sv, "windows", sayable("a Windows program or library")},
    Signature{"\xcf\xfa\xed\xfe"sv, "not-elf", sayable("a macOS library (Mach-O)")},
    Signature{"\xce\xfa\xed\xfe"sv, "not-elf", sayable("a 32-bit macOS library (Mach-O)")},
    Signature{"\xca\xfe\xba\xbe"sv, "not-elf", sayable("a macOS universal library")},
    Signature{"\x1f\x8b"sv, "not-elf", sayable("gzip data")},
    Signature{"!<arch>\n"sv, "not-elf", sayable("a static library archive")},
    Signature{"%PDF"sv, "not-elf", sayable("a PDF document")}};

// Classifies a file without the ELF signature. `head` is the first 512 bytes at most.
FileState foreign(std::string_view head, std::uint64_t size) {
  for (const Signature& s : kSignatures)
    if (head.substr(0, s.magic.size()) == s.magic) return {std::string(s.state), table_text(s.detail), ""};
  const auto start = head.find_first_not_of("\xef\xbb\xbf \t\r\n");  // a byte order mark, and white space
  const std::string_view shown = start == std::string_view::npos ? ""sv : head.substr(start);
  for (std::string_view tag : {"<!doctype html"sv, "<html"sv, "<head"sv, "<body"sv})
    if (starts_with_ignoring_case(shown, tag))
      return {"html", message("a web page saved under this name"), ""};
  if (starts_with_ignoring_case(shown, "<?xml") || starts_with_ignoring_case(shown, "<error"))
    return {"html", message("an XML response of a server saved under this name"), ""};
  if (std::all_of(head.begin(), head.end(), [](char c) { return c == '\0'; }))
    return {"not-elf", message("starts with zero bytes: a download or copy whose data was never written"),
            ""};
  // Bytes from 0x80 on count as text: UTF-8 or an older encoding.
  const bool text = std::all_of(head.begin(), head.end(), [](char c) {
    return c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c != 0x7f) || (c & 0x80) != 0;
  });
  if (text) return {"not-elf", message("text, {} bytes", size), ""};
  return {"not-elf", message("does not start with the ELF signature"), ""};
}

}  // namespace

FileState state_of_failure(const Error& error) {
  if (error.code == Errc::NotFound) return {"vanished", error.message, ""};
  return {"unreadable", error.message, ""};
}

// Goes as far as the loader's first checks: the signature, the headers, and whether all segments are inside
// the file. Damage further inside (hash tables, names) shows up in open_library().
FileState file_state(const std::shared_ptr<const ByteSource>& source) {
  const FileBytes file(source);
  if (file.size() == 0) return {"empty", "0 bytes", ""};
  const auto head = file.slice(0, std::min<std::uint64_t>(file.size(), 512));
  if (!head) {  // the file was longer a moment ago
    if (head.error().code == Errc::Malformed)
      return {"truncated", message("it shrank while it was read"), ""};
    return state_of_failure(head.error());
  }
  const std::string_view text = head->text();
  // The literal is split because \x takes all hexadecimal digits that follow, and E is one of them.
  if (text.substr(0, 4) !=
      "\x7f"
      "ELF"sv) {
    if ("\x7f"
        "ELF"sv.substr(0, text.size()) == text)
      return {"truncated", message("only the first bytes of an ELF file"), ""};
    return foreign(text, file.size());
  }
  const auto identity = identify_elf(file);
  if (!identity) return {"truncated", message("the ELF header is damaged: {}", identity.error().message), ""};
  FileState state{"elf", "", machine_name(*identity)};
  // Still "elf": the file is whole, and `machine` says what is wrong with it.
  if (!identity->is_64 || !identity->little_endian) return state;
  const auto image = Image::open(source);
  if (!image)
    return {"truncated", message("the program headers are damaged: {}", image.error().message),
            state.machine};
  if (const auto missing = image->missing_part()) return {"truncated", *missing, state.machine};
  if (image->segments().empty())  // a .o file
    return {"not-elf", message("an ELF object without program headers"), state.machine};
  return state;
}

}  // namespace scankit::elf
