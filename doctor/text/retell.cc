// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>

#include "doctor/text/catalogue.h"

namespace scankit {
namespace {

constexpr std::size_t kFewestLetters = 6;

// Cuts a text at its places. Nothing where a brace is open.
struct Cut {
  std::vector<std::string> literals{""}, places;
};
std::optional<Cut> cut(std::string_view text) {
  Cut out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool brace = c == '{' || c == '}';
    if (brace && at + 1 < text.size() && text[at + 1] == c)
      ++at;  // "{{" is a brace
    else if (brace) {
      const auto end = text.find('}', at);
      if (c == '}' || end == std::string_view::npos) return std::nullopt;
      const std::string_view inside = text.substr(at + 1, end - at - 1);
      out.places.push_back(inside.empty() ? std::to_string(out.places.size()) : std::string(inside));
      out.literals.emplace_back();
      at = end;
      continue;
    }
    out.literals.back() += c;
  }
  return out;
}

}  // namespace

std::optional<SentencePattern> pattern_of(std::string_view key) {
  auto parts = cut(key);
  if (!parts) return std::nullopt;
  SentencePattern pattern{std::move(parts->literals), std::move(parts->places), 0};
  for (std::size_t i = 0; i < pattern.literals.size(); ++i) {
    const std::string& literal = pattern.literals[i];
    if (literal.empty() && i > 0 && i + 1 < pattern.literals.size()) return std::nullopt;
    pattern.letters += static_cast<std::size_t>(
        std::ranges::count_if(literal, [](unsigned char c) { return std::isalpha(c) != 0; }));
  }
  const bool formats = std::ranges::any_of(
      pattern.places, [](const std::string& place) { return place.find(':') != std::string::npos; });
  if (formats || pattern.letters < kFewestLetters) return std::nullopt;
  return pattern;
}

std::optional<std::vector<std::string_view>> values_in(const SentencePattern& pattern,
                                                       std::string_view text) {
  const std::string& first = pattern.literals.front();
  if (!text.starts_with(first)) return std::nullopt;
  if (pattern.places.empty())
    return text == first ? std::optional(std::vector<std::string_view>()) : std::nullopt;
  const std::string& last = pattern.literals.back();
  std::vector<std::string_view> values;
  std::size_t at = first.size();
  for (std::size_t i = 1; i + 1 < pattern.literals.size(); ++i) {
    const auto found = text.find(pattern.literals[i], at);
    if (found == std::string_view::npos) return std::nullopt;
    values.push_back(text.substr(at, found - at));
    at = found + pattern.literals[i].size();
  }
  if (text.size() < at + last.size() || !text.ends_with(last)) return std::nullopt;
  values.push_back(text.substr(at, text.size() - last.size() - at));
  if (std::ranges::any_of(values, &std::string_view::empty)) return std::nullopt;
  return values;
}

std::string with_values(std::string_view translation, const SentencePattern& pattern,
                        const std::vector<std::string>& values) {
  const auto parts = cut(translation);
  if (!parts) return "";
  std::string out = parts->literals.front();
  for (std::size_t i = 0; i < parts->places.size(); ++i) {
    const auto place = std::ranges::find(pattern.places, parts->places[i]);
    if (place != pattern.places.end())
      out += values[static_cast<std::size_t>(place - pattern.places.begin())];
    out += parts->literals[i + 1];
  }
  return out;
}

}  // namespace scankit
