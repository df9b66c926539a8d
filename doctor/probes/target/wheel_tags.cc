// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/target/wheel_tags.h"

#include <algorithm>
#include <set>

#include "doctor/probes/python/python_text.h"

namespace scankit {

bool read_wheel_name(const std::string& file_name, Wheel& wheel) {
  if (!file_name.ends_with(".whl")) return false;
  const std::string name = file_name.substr(0, file_name.size() - 4);
  const auto split = [](const std::string& text, char by) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at <= text.size();) {
      const auto end = std::min(text.find(by, at), text.size());
      parts.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    return parts;
  };
  const std::vector<std::string> parts = split(name, '-');
  if (parts.size() != 5 && parts.size() != 6) return false;
  if (std::ranges::any_of(parts, [](const std::string& part) { return part.empty(); })) return false;
  if (parts.size() == 6 && (parts[2][0] < '0' || parts[2][0] > '9'))
    return false;  // a build begins with a digit
  wheel.name = parts[0];
  wheel.version = parts[1];
  wheel.python_tags = split(parts[parts.size() - 3], '.');
  wheel.abi_tags = split(parts[parts.size() - 2], '.');
  wheel.platform_tags = split(parts.back(), '.');
  wheel.tags_from = "file name";
  return true;
}

std::vector<Wheel> tag_lines(const std::string& text) {
  constexpr std::string_view kTag = "Tag:";
  std::vector<Wheel> lines;
  for (const std::string_view line : lines_of(text)) {
    if (lines.size() > kMostTags) break;
    Wheel one;
    if (line.starts_with(kTag) &&
        read_wheel_name("n-0-" + std::string(trimmed(line.substr(kTag.size()))) + ".whl", one))
      lines.push_back(std::move(one));
  }
  return lines;
}

std::vector<std::string> expanded_tags(const Wheel& wheel) {
  std::vector<std::string> tags;
  for (const std::string& python : wheel.python_tags)
    for (const std::string& abi : wheel.abi_tags)
      for (const std::string& platform : wheel.platform_tags)
        if (tags.size() < kMostTags) tags.push_back(python + "-" + abi + "-" + platform);
  return tags;
}

bool take_tags(const std::string& text, Wheel& wheel) {
  std::set<std::string> seen;
  const auto add = [&](const char* kind, const std::vector<std::string>& from, std::vector<std::string>& to) {
    for (const std::string& tag : from)
      if (seen.size() <= kMostTags && seen.insert(kind + tag).second) to.push_back(tag);
  };
  const std::vector<Wheel> lines = tag_lines(text);
  for (const Wheel& one : lines) {
    add("python ", one.python_tags, wheel.python_tags);
    add("abi ", one.abi_tags, wheel.abi_tags);
    add("platform ", one.platform_tags, wheel.platform_tags);
    wheel.tags_from = "WHEEL";
  }
  return lines.size() <= kMostTags && seen.size() <= kMostTags;
}

}  // namespace scankit
