// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/python/python_text.h"

#include <algorithm>

#include "doctor/base/files.h"

namespace scankit {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\f\v";

// Length of the UTF-8 sequence at text[at], 0 where there is none. Overlong forms and surrogates are refused,
// as Python's decoder refuses them.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
  const unsigned char second = byte(at + 1);
  if (first == 0xE0 && second < 0xA0) return 0;
  if (first == 0xED && second > 0x9F) return 0;
  if (first == 0xF0 && second < 0x90) return 0;
  if (first == 0xF4 && second > 0x8F) return 0;
  return length;
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

std::string lowered(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
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
    const std::size_t length = utf8_length(text, at);
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

Result<std::string> read_head(const Host& host, const std::string& path, std::size_t limit) {
  SCANKIT_TRY(const auto source, host.open(path));
  std::string bytes(static_cast<std::size_t>(std::min<std::uint64_t>(limit, source->size())), '\0');
  SCANKIT_CHECK(source->read(0, bytes.data(), bytes.size()));
  return bytes;
}

bool is_regular_file(const Host& host, const std::string& path) {
  const auto info = host.stat(path);
  return info && info->kind == FileKind::Regular;
}

std::string working_directory(const Host& host) { return host.is_live() ? current_directory() : ""; }

std::string absolute_path(const Host& host, const std::string& path) {
  if (path.starts_with('/')) return path_normalize(path);
  const std::string directory = working_directory(host);
  return path_normalize(path_join(directory.empty() ? "/" : directory, path));
}

std::optional<std::string> python_string_literal(std::string_view text, std::size_t& at) {
  if (at >= text.size() || (text[at] != '\'' && text[at] != '"')) return std::nullopt;
  const char quote = text[at];
  std::string value;
  for (std::size_t i = at + 1; i < text.size() && text[i] != '\n'; ++i) {
    if (text[i] == quote) {
      at = i + 1;
      return value;
    }
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    value += text[i];
  }
  return std::nullopt;
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

}  // namespace scankit
