// SPDX-License-Identifier: Apache-2.0
#include "ci/fleet/hostlist.h"

#include <algorithm>
#include <charconv>

#include "doctor/base/say.h"

namespace scankit::fleet {
namespace {

// Four times the largest cluster there is; a slip of the keyboard must not fill the memory.
constexpr std::size_t kMostHosts = 65536;
constexpr std::size_t kMostDigits = 9;

using Names = std::vector<std::string>;

Error wrong(std::string_view list, std::string why) {
  return {Errc::InvalidArgument, say("\"{}\": {}", list, why),
          say("write node[1-4], node[01-16,20], or names separated by commas")};
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= kMostDigits &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::size_t number(std::string_view digits) {
  std::size_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

// "1-3" or "07": the digits of each number, padded as the first is.
Result<Names> one_range(std::string_view list, std::string_view range) {
  const std::size_t dash = range.find('-');
  const std::string_view low = range.substr(0, dash),
                         high = dash == std::string_view::npos ? low : range.substr(dash + 1);
  if (!is_number(low) || !is_number(high)) return wrong(list, say("[{}] is not a range of numbers", range));
  const std::size_t from = number(low), to = number(high);
  if (to < from) return wrong(list, say("the range {} runs backwards", range));
  if (to - from >= kMostHosts) return wrong(list, say("more than {} names", kMostHosts));
  Names names;
  for (std::size_t at = from; at <= to; ++at) {
    const std::string digits = std::to_string(at);
    names.push_back(std::string(low.size() - std::min(low.size(), digits.size()), '0') + digits);
  }
  return names;
}

// What stands between two brackets: "1-3,7".
Result<Names> ranges(std::string_view list, std::string_view inside) {
  Names names;
  for (std::size_t begin = 0; begin <= inside.size();) {
    const std::size_t comma = std::min(inside.find(',', begin), inside.size());
    SCANKIT_TRY(const Names more, one_range(list, inside.substr(begin, comma - begin)));
    names.insert(names.end(), more.begin(), more.end());
    if (names.size() > kMostHosts) return wrong(list, say("more than {} names", kMostHosts));
    begin = comma + 1;
  }
  return names;
}

// One element of the list, which has any number of brackets.
Result<Names> one_pattern(std::string_view list, std::string_view pattern) {
  Names names{""};
  while (!pattern.empty()) {
    const std::size_t open = std::min(pattern.find('['), pattern.size());
    for (std::string& name : names) name += pattern.substr(0, open);
    pattern.remove_prefix(open);
    if (pattern.empty()) break;
    const std::size_t close = pattern.find(']');
    if (close == std::string_view::npos) return wrong(list, say("a [ has no ]"));
    SCANKIT_TRY(const Names middles, ranges(list, pattern.substr(1, close - 1)));
    if (middles.size() * names.size() > kMostHosts) return wrong(list, say("more than {} names", kMostHosts));
    Names longer;
    for (const std::string& name : names)
      for (const std::string& middle : middles) longer.push_back(name + middle);
    names = std::move(longer);
    pattern.remove_prefix(close + 1);
  }
  if (names.front().find(']') != std::string::npos) return wrong(list, say("a ] has no ["));
  return names;
}

}  // namespace

Result<std::vector<std::string>> expanded_hosts(std::string_view list) {
  constexpr std::string_view kBetween = ", \t\n";
  Names names;
  for (std::size_t begin = 0; begin < list.size();) {
    // A comma within brackets separates numbers, not names.
    std::size_t end = begin;
    for (bool inside = false; end < list.size(); ++end) {
      if (list[end] == '[') inside = true;
      if (list[end] == ']') inside = false;
      if (!inside && kBetween.find(list[end]) != std::string_view::npos) break;
    }
    if (end > begin) {
      SCANKIT_TRY(const Names more, one_pattern(list, list.substr(begin, end - begin)));
      names.insert(names.end(), more.begin(), more.end());
      if (names.size() > kMostHosts) return wrong(list, say("more than {} names", kMostHosts));
    }
    begin = end + 1;
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());  // clang 14 does not read ranges::unique
  return names;
}

}  // namespace scankit::fleet
