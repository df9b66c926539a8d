// SPDX-License-Identifier: Apache-2.0
#include "doctor/elf/file_state.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "doctor/base/say.h"
#include "doctor/elf/image.h"

namespace scankit {
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

}  // namespace scankit
