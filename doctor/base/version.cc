// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/version.h"

#include <algorithm>
#include <cctype>

namespace scankit {

std::optional<Version> Version::parse(std::string_view text) {
  Version version;
  std::size_t at = 0;
  while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]))) {
    unsigned number = 0;
    while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]))) {
      if (number > 100'000'000) return std::nullopt;  // no release number is that long; do not wrap around
      number = number * 10 + static_cast<unsigned>(text[at++] - '0');
    }
    version.release.push_back(number);
    if (at + 1 >= text.size() || text[at] != '.' || !std::isdigit(static_cast<unsigned char>(text[at + 1])))
      break;
    ++at;
  }
  if (version.release.empty()) return std::nullopt;
  version.suffix = std::string(text.substr(at));
  return version;
}

std::string Version::major_minor() const { return std::to_string(part(0)) + "." + std::to_string(part(1)); }

bool Version::is_prerelease() const {
  return suffix.starts_with("a") || suffix.starts_with("b") || suffix.starts_with("rc") ||
         suffix.starts_with(".dev");
}

std::strong_ordering operator<=>(const Version& a, const Version& b) {
  const std::size_t parts = std::max(a.release.size(), b.release.size());
  for (std::size_t i = 0; i < parts; ++i)
    if (auto order = a.part(i) <=> b.part(i); std::is_neq(order)) return order;
  return std::strong_ordering::equal;
}

bool operator==(const Version& a, const Version& b) { return std::is_eq(a <=> b); }

}  // namespace scankit
