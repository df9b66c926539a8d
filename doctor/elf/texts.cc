// SPDX-License-Identifier: Apache-2.0
#include "doctor/elf/texts.h"

#include <elf.h>

#include <algorithm>

namespace scankit {
namespace {

constexpr std::uint64_t kTextPiece = 1u << 20, kLongestText = 512, kScanLimit = 64u << 20;

struct Range {
  std::uint64_t offset, size;
};

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

// Those that begin in the first kTextPiece bytes; the rest is there for the last one's end.
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

}  // namespace scankit
