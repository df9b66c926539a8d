// SPDX-License-Identifier: Apache-2.0
// The distribution has no static libfmt: its formatting code is compiled into this one file, and everybody
// else includes the small fmt/core.h, which say() needs to check the braces at compile time.
#define FMT_HEADER_ONLY
#include "doctor/base/say.h"

#include <fmt/format.h>

#include <cstdint>
#include <set>

namespace scankit {
namespace {

// Templates of fmt that other files instantiate (lists of texts, from fmt 10 on) call this function,
// which the small headers only declare. The pointer makes the compiler emit it here.
[[gnu::used]] bool (*const kPrintable)(std::uint32_t) = &fmt::detail::is_printable;
// The same for fmt::format() in other files. Without the pointer, clang leaves out an inline function if
// all calls of it in this file are inlined.
[[gnu::used]] std::string (*const kFormat)(fmt::string_view, fmt::format_args) = &fmt::vformat;

// Not thread-local: main() sets it once, before it starts other threads. The thread that draws the
// progress line has a language of its own (set_progress_language()).
const Language* g_language = nullptr;

// The replacement fields of a text with their format specifications; "{}" is numbered as fmt numbers it,
// so that "{} {}" and "{1} {0}" have the same fields. Nothing if a brace is not closed, or if "{}" and
// "{0}" are mixed, which fmt refuses.
std::optional<std::set<std::string>> places(std::string_view text) {
  std::set<std::string> found;
  unsigned next = 0;
  bool numbered = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '{' && text[at] != '}') continue;
    if (at + 1 < text.size() && text[at + 1] == text[at]) {
      ++at;  // "{{" and "}}" stand for themselves
      continue;
    }
    const auto end = text.find('}', at);
    if (text[at] == '}' || end == std::string_view::npos) return std::nullopt;
    std::string inside(text.substr(at + 1, end - at - 1));
    at = end;
    if (inside.empty() || inside[0] == ':') {
      inside.insert(0, std::to_string(next++));
    } else if (inside[0] >= '0' && inside[0] <= '9') {
      numbered = true;
    }
    found.insert(std::move(inside));
  }
  if (numbered && next > 0) return std::nullopt;
  return found;
}

// Formats the translation if there is one and fmt accepts it, else the English text.
std::string formatted(fmt::string_view english, std::optional<std::string_view> translation,
                      fmt::format_args values) {
  if (translation) {
    try {
      return fmt::vformat(fmt::string_view(translation->data(), translation->size()), values);
    } catch (const fmt::format_error&) {  // a fault of the translation, which must not cost the answer
    }
  }
  return fmt::vformat(english, values);
}

}  // namespace

Speaking::Speaking(const Language* language) : before_(g_language) { g_language = language; }
Speaking::~Speaking() { g_language = before_; }
const Language* spoken_language() { return g_language; }

std::string say_formatted(fmt::string_view english, fmt::format_args values, const Language* language) {
  if (language == nullptr) return fmt::vformat(english, values);
  const std::string_view key(english.data(), english.size());
  auto translation = language->sentence(key);
  if (translation && !same_places(key, *translation)) translation.reset();
  return formatted(english, translation, values);
}

std::string say_counted(std::size_t n, fmt::string_view one, fmt::string_view many, fmt::format_args values,
                        const Language* language) {
  const fmt::string_view english = n == 1 ? one : many;
  if (language == nullptr) return fmt::vformat(english, values);
  const std::string_view single(one.data(), one.size()), several(many.data(), many.size());
  // A translation fits if it has the fields of either English form: the singular often omits the number.
  auto translation = language->counted(single, n);
  if (translation && !same_places(single, *translation) && !same_places(several, *translation))
    translation.reset();
  return formatted(english, translation, values);
}

std::string said(std::string_view english) {
  if (g_language == nullptr || english.empty()) return std::string(english);
  const auto translation = g_language->sentence(english);
  return std::string(translation && same_places(english, *translation) ? *translation : english);
}

std::string said_list(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts)
    if (!part.empty()) all = all.empty() ? part : say("{}, {}", all, part);
  return all;
}

std::string clauses(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts)
    if (!part.empty()) all = all.empty() ? part : say("{}; {}", all, part);
  return all;
}

// Chinese and Japanese have no space after U+3002, their full stop.
std::string sentences(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts)
    if (!part.empty()) all += (all.empty() || all.ends_with("\u3002") ? "" : " ") + part;
  return all;
}

bool same_places(std::string_view english, std::string_view translation) {
  if (english.find_first_of("{}") == std::string_view::npos &&
      translation.find_first_of("{}") == std::string_view::npos)
    return true;
  const auto wanted = places(english), given = places(translation);
  return given && wanted == given;
}

}  // namespace scankit
