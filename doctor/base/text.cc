// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace scankit {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\f\v";
// Longer words are never compared: the time for a distance is the product of both lengths.
constexpr std::size_t kLongest = 64;

// Makes words equal that differ only in case or in "-", "_" and " ".
std::string folded(std::string_view word) {
  std::string out = lowered(word);
  std::ranges::replace_if(
      out, [](char c) { return c == '-' || c == ' '; }, '_');
  return out;
}

// The edit distance known as optimal string alignment: Levenshtein's distance plus swaps of neighbours,
// where no part of the text is edited twice.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i)
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const auto from = text.find_first_not_of(kBlanks);
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(kBlanks) - from + 1);
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::vector<std::string> split(std::string_view text, std::string_view separators) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(separators, at), text.size());
    parts.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::vector<std::string> split_nonempty(std::string_view text, std::string_view separators) {
  std::vector<std::string> parts = split(text, separators);
  std::erase(parts, "");
  return parts;
}

// Empty parts at the front get no separator: join({"", "a"}) is "a".
std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (const std::string& part : parts) {
    if (!out.empty()) out += separator;
    out += part;
  }
  return out;
}

std::string lowered(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

// The ranges of RFC 3629, section 4. The second byte of some lead bytes has a narrower range, which
// excludes overlong forms (E0, F0), surrogates (ED) and values above U+10FFFF (F4).
std::size_t utf8_sequence_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  const auto follows = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return follows(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF)
    return follows(1, lead == 0xE0 ? 0xA0 : 0x80, lead == 0xED ? 0x9F : 0xBF) && follows(2) ? 3 : 0;
  if (lead >= 0xF0 && lead <= 0xF4)
    return follows(1, lead == 0xF0 ? 0x90 : 0x80, lead == 0xF4 ? 0x8F : 0xBF) && follows(2) && follows(3) ? 4
                                                                                                          : 0;
  return 0;
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_sequence_length(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::string printable(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const std::size_t length = utf8_sequence_length(text, at);
    if (length == 0 || byte < 0x20 || byte == 0x7F) {
      result += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
      ++at;
    } else {
      result += text.substr(at, length);
      at += length;
    }
  }
  return result;
}

// In UTF-8, U+0080..U+009F start with C2, U+2028..U+202E with E2 80, and U+2066..U+2069 with E2 81.
bool acts_on_terminal(std::string_view sequence) {
  if (sequence.size() == 2) return sequence[0] == '\xC2' && static_cast<unsigned char>(sequence[1]) < 0xA0;
  if (sequence.size() != 3 || sequence[0] != '\xE2') return false;
  const auto second = static_cast<unsigned char>(sequence[1]),
             third = static_cast<unsigned char>(sequence[2]);
  return (second == 0x80 && third >= 0xA8 && third <= 0xAE) ||
         (second == 0x81 && third >= 0xA6 && third <= 0xA9);
}

std::string normalized_name(std::string_view distribution) {
  std::string name;
  for (const char c : lowered(distribution)) {
    const bool separator = c == '-' || c == '_' || c == '.';
    if (!separator)
      name += c;
    else if (!name.ends_with('-'))
      name += '-';
  }
  return name;
}

std::string top_package(const std::string& dotted) { return dotted.substr(0, dotted.find('.')); }

std::string nearest_word(std::string_view word, const std::vector<std::string>& known) {
  if (word.empty() || word.size() > kLongest) return "";
  const std::string wanted = folded(word);
  // The first candidate may differ by this many edits, every later one must be strictly nearer. Of two
  // that are equally near, the first in `known` wins.
  std::size_t least = wanted.size() / 3 + 1;
  std::string best;
  for (const std::string& candidate : known) {
    if (candidate.size() > kLongest) continue;
    const std::size_t found = distance(wanted, folded(candidate));
    if (found > least || (found == least && !best.empty())) continue;
    least = found;
    best = candidate;
  }
  return best;
}

std::string shell_quoted(const std::string& word) {
  constexpr std::string_view kSafe =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
  if (!word.empty() && word.find_first_not_of(kSafe) == std::string::npos) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_quoted(word);
  return line;
}

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  constexpr double kDay = 86'400'000;
  constexpr std::array<std::pair<std::string_view, double>, 5> kUnits{
      {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}}};
  double number = 0;
  const auto parsed =
      // std::from_chars, because std::strtod obeys the locale. "fixed" refuses exponents and "0x".
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (parsed.ec != std::errc()) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<std::size_t>(parsed.ptr - text.data()));
  // What follows the number must be exactly one of the units. "-1s" and "0.1ms" fail the range check.
  for (const auto& [name, factor] : kUnits) {
    if (unit != name) continue;
    const double length = number * factor;
    if (!(length >= 1 && length <= kDay)) return std::nullopt;  // NaN too
    return std::chrono::milliseconds(std::llround(length));
  }
  return std::nullopt;
}

}  // namespace scankit
