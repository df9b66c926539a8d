// SPDX-License-Identifier: Apache-2.0
#include "builder/installer/settings.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "doctor/base/text.h"

namespace scankit::installer {
namespace {

// pip's normal form of a key (pip/_internal/configuration.py).
std::string pip_key(std::string_view text) {
  std::string key = lowered(trimmed(text));
  std::ranges::replace(key, '_', '-');
  return key.starts_with("--") ? key.substr(2) : key;
}

bool is_pip_place(const std::string& key) {
  constexpr std::array<std::string_view, 4> kPlaces = {"target", "prefix", "root", "python"};
  return std::ranges::find(kPlaces, key) != kPlaces.end();
}

bool has(std::string_view text, char c) { return text.find(c) != std::string_view::npos; }

// One pass over TOML that keeps to its nesting. Keys are paths: {"tool", "uv", "pip", "target"}.
class TomlPlaces {
 public:
  using Path = std::vector<std::string>;
  TomlPlaces(std::string_view text, const Path& table) : text_(text), table_(table) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
  }

  std::string find() {
    Path header;
    for (skip(kBlanks); at_ < text_.size() && found_.empty(); skip(kBlanks)) {
      if (here() == '[') {
        while (here() == '[' || here() == ' ' || here() == '\t') ++at_;
        header = key();
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        pair(header, 0);
      }
    }
    return found_;
  }

 private:
  static constexpr std::string_view kSpaces = " \t", kBlanks = " \t\r\n", kBetween = " \t\r\n,";
  static constexpr int kDeepest = 60;  // brackets in each other; uv's parser, too, refuses a file with more

  char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  // Comments are skipped with line ends.
  void skip(std::string_view characters) {
    while (at_ < text_.size()) {
      if (here() == '#' && characters != kSpaces)
        at_ = std::min(text_.find('\n', at_), text_.size());
      else if (has(characters, here()))
        ++at_;
      else
        return;
    }
  }

  // A string in any of the four kinds of quotes; returns what it has between them, escapes as they are.
  std::string_view quoted() {
    const char quote = here();
    const std::string three(3, quote);
    const bool lines = text_.substr(at_).starts_with(three);
    const std::string_view end = lines ? std::string_view(three) : std::string_view(three).substr(2);
    const std::size_t begin = at_ += end.size();
    while (at_ < text_.size() && !text_.substr(at_).starts_with(end) && (lines || here() != '\n'))
      at_ += here() == '\\' && quote == '"' ? 2 : 1;
    at_ = std::min(at_, text_.size());
    const std::string_view inside = text_.substr(begin, at_ - begin);
    if (here() == quote) at_ += end.size();
    while (lines && here() == quote) ++at_;  // up to two quotes may precede the end
    return inside;
  }

  // As much of it as decides: a stranger's file may have keys of a megabyte, and a path is copied for each value.
  Path key() {
    constexpr std::size_t kMostParts = 8, kLongestPart = 64;
    Path path;
    for (;;) {
      skip(kSpaces);
      std::string_view part;
      if (here() == '"' || here() == '\'') {
        part = quoted();
      } else {
        const std::size_t end = std::min(text_.find_first_of(" \t\r\n.=]},#\"'[{", at_), text_.size());
        part = text_.substr(at_, end - at_);
        at_ = end;
      }
      if (path.size() < kMostParts) path.emplace_back(part.substr(0, kLongestPart));
      skip(kSpaces);
      if (here() != '.') return path;
      ++at_;
    }
  }

  // KEY = VALUE below the path. What is none is skipped, by one character at least.
  void pair(Path path, int depth) {
    const std::size_t begin = at_;
    for (std::string& part : key()) path.push_back(std::move(part));
    note(path);
    if (here() == '=') {
      ++at_;
      skip(kSpaces);
      value(path, depth);
    } else if (at_ == begin) {
      ++at_;
    }
  }

  void value(const Path& path, int depth) {
    const char open = here();
    if (open == '"' || open == '\'') {
      quoted();
    } else if (open != '[' && open != '{') {
      at_ = std::min(text_.find_first_of(",]}\n#", at_), text_.size());
    } else if (depth == kDeepest) {
      at_ = text_.size();
    } else {
      const char close = open == '[' ? ']' : '}';
      ++at_;
      for (skip(kBetween); at_ < text_.size() && here() != close; skip(kBetween)) {
        const std::size_t begin = at_;
        open == '[' ? value({""}, depth + 1) : pair(path, depth + 1);
        if (at_ == begin) ++at_;
      }
      if (here() == close) ++at_;
    }
  }

  // A part with an escape may be any name.
  void note(const Path& path) {
    if (path.size() <= table_.size()) return;
    const auto is = [](const std::string& part, std::string_view name) {
      return part == name || has(part, '\\');
    };
    for (std::size_t i = 0; i < table_.size(); ++i)
      if (!is(path[i], table_[i])) return;
    for (const char* name : {"target", "prefix"})
      if (found_.empty() && is(path[table_.size()], name)) found_ = "[" + join(table_, ".") + "] " + name;
  }

  std::string_view text_;
  const Path& table_;
  std::size_t at_ = 0;
  std::string found_;
};

}  // namespace

std::string place_in_ini(const std::string& text, const std::vector<std::string>& sections) {
  std::string lines_only = text;
  std::ranges::replace(lines_only, '\r', '\n');  // Python ends a line there, too
  std::string section, place;
  std::size_t indent = 0;
  bool in_key = false;
  for (const std::string_view raw : lines_of(lines_only)) {
    const std::string_view line = trimmed(raw);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    const std::size_t here = raw.find_first_not_of(" \t\f\v");
    if (in_key && here > indent) {  // the value goes on
      if (!place.empty()) return place;
      continue;
    }
    indent = here;
    place.clear();
    in_key = line[0] != '[';
    if (!in_key) {
      section = line.substr(1, line.find(']') - 1);
      continue;
    }
    const auto equals = std::min(line.find_first_of("=:"), line.size());
    const std::string key = pip_key(line.substr(0, equals));
    if (!is_pip_place(key) || std::ranges::find(sections, section) == sections.end()) continue;
    place = "[" + section + "] " + key;
    if (equals + 1 < line.size()) return place;
  }
  return "";
}

std::string place_in_toml(const std::string& text, const std::vector<std::string>& table) {
  return TomlPlaces(text, table).find();
}

}  // namespace scankit::installer
