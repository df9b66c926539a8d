// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/columns.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "doctor/base/text.h"

namespace scankit {
namespace {

struct Range {
  char32_t first, last;
  unsigned columns;
};
constexpr Range kRanges[] = {
#define NONE(first, last) Range{first, last, 0},
#define WIDE(first, last) Range{first, last, 2},
#include "doctor/base/columns.def"
#undef NONE
#undef WIDE
};
static_assert(std::ranges::is_sorted(kRanges, {}, &Range::last));

// The code point of one well-formed sequence. A byte that is not UTF-8 gives some value below 0x80; it is one column wide.
char32_t code_point(std::string_view sequence) {
  constexpr std::array<unsigned, 5> kMask{0, 0x7f, 0x1f, 0x0f, 0x07};
  auto point = static_cast<char32_t>(static_cast<unsigned char>(sequence[0]) & kMask[sequence.size()]);
  for (const char c : sequence.substr(1)) point = point << 6 | (static_cast<unsigned char>(c) & 0x3fu);
  return point;
}

std::size_t columns_of_letter(char32_t point) {
  if (point < kRanges[0].first) return 1;
  const auto* range = std::ranges::lower_bound(kRanges, point, {}, &Range::last);
  return range != std::end(kRanges) && point >= range->first ? range->columns : 1;
}

// Calls `take` with each letter and its code point, until it answers false.
template <typename Take>
void each_letter(std::string_view text, const Take& take) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = std::max<std::size_t>(utf8_sequence_length(text, at), 1);
    const std::string_view letter = text.substr(at, length);
    if (!take(letter, code_point(letter))) return;
    at += length;
  }
}

// After the classes CL, CP, EX, IS and NS, and OP, of Unicode's UAX 14, as far as they occur beside Chinese or Japanese.
constexpr std::u32string_view kClosing =
    U")]},.:;!?%"
    U"\u2019\u201d\u2014\u2026\u3001\u3002\u3005\u3009\u300b\u300d\u300f\u3011\u3015\u3017\u3019\u301b\u30fb"
    U"\u30fc"
    U"\uff01\uff05\uff09\uff0c\uff0e\uff1a\uff1b\uff1f\uff3d\uff5d\uff5e";
constexpr std::u32string_view kOpening =
    U"([{\u2018\u201c\u3008\u300a\u300c\u300e\u3010\u3014\u3016\u3018\u301a\uff08\uff3b\uff5b";

bool may_break(char32_t before, char32_t after) {
  if (kOpening.find(before) != kOpening.npos || kClosing.find(after) != kClosing.npos) return false;
  return columns_of_letter(after) != 0 && (columns_of_letter(before) == 2 || columns_of_letter(after) == 2);
}

// The parts of a word without spaces between which a line may end: all of it where no letter is East Asian.
std::vector<std::string_view> parts_of(std::string_view word) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0, at = 0;
  char32_t before = 0;
  each_letter(word, [&](std::string_view letter, char32_t point) {
    if (at > begin && may_break(before, point)) {
      parts.push_back(word.substr(begin, at - begin));
      begin = at;
    }
    if (columns_of_letter(point) > 0) before = point;
    at += letter.size();
    return true;
  });
  parts.push_back(word.substr(begin));
  return parts;
}

}  // namespace

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  each_letter(text, [&](std::string_view, char32_t point) {
    columns += columns_of_letter(point);
    return true;
  });
  return columns;
}

std::string cut_to(std::string_view text, std::size_t columns) {
  constexpr std::size_t kShortest = 12;  // with dots; below that every letter counts
  if (columns_of(text) <= columns) return std::string(text);
  const std::string dots = columns >= kShortest ? "..." : "";
  std::size_t left = columns - dots.size(), bytes = 0;
  each_letter(text, [&](std::string_view letter, char32_t point) {
    const std::size_t wide = columns_of_letter(point);
    if (wide > left) return false;
    left -= wide;
    bytes += letter.size();
    return true;
  });
  return std::string(text.substr(0, bytes)) + dots;
}

std::string in_column(std::string text, std::size_t columns) {
  const std::size_t taken = columns_of(text);
  text.append(taken < columns ? columns - taken : 1, ' ');
  return text;
}

std::string wrapped(std::string_view text, std::size_t at, std::size_t indent, std::size_t columns) {
  std::string out;
  bool line_begins = true;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    std::size_t space = 1;  // before the first part of a word only
    for (const std::string_view part : parts_of(text.substr(begin, end - begin))) {
      if (!line_begins && at + space + columns_of(part) > columns) {
        out += "\n" + std::string(indent, ' ');
        at = indent;
        line_begins = true;
      }
      if (line_begins) space = 0;
      out.append(space, ' ').append(part);
      at += space + columns_of(part);
      line_begins = false;
      space = 0;
    }
    begin = end + 1;
  }
  return out;
}

}  // namespace scankit
