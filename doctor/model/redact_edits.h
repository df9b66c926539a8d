// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

// What the finders of redaction share. Each finder reads a text once, from the front: a hostile text of 400
// kB may not take seconds.
namespace scankit::redaction {

inline bool is_alnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_word(char c) { return is_alnum(c) || c == '_'; }
inline bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
inline char char_at(std::string_view text, std::size_t at) { return at < text.size() ? text[at] : '\0'; }
// '\0' in front of the text.
inline char char_before(std::string_view text, std::size_t at) { return at == 0 ? '\0' : text[at - 1]; }

inline std::string lower_case(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

template <class Wanted>
std::size_t end_of_run(std::string_view text, std::size_t at, const Wanted& wanted) {
  while (at < text.size() && wanted(text[at])) ++at;
  return at;
}

// A piece of a text: [start, end).
struct Place {
  std::size_t start = 0, end = 0;
  std::string_view in(std::string_view text) const { return text.substr(start, end - start); }
};
struct Edit {
  Place place;
  std::string by;
};

// The text with all edits done at once: replacing one after the other would move the tail for each. Where two
// overlap, all that either names goes.
inline std::string edited(std::string_view text, std::vector<Edit> edits) {
  std::ranges::stable_sort(edits, {}, [](const Edit& edit) { return edit.place.start; });
  std::string out;
  std::size_t at = 0;
  for (const Edit& edit : edits) {
    if (edit.place.start >= at) {
      out += text.substr(at, edit.place.start - at);
      out += edit.by;
    }
    at = std::max(at, edit.place.end);
  }
  return out += text.substr(std::min(at, text.size()));
}

}  // namespace scankit::redaction
