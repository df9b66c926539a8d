// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace scankit {

// Release numbers compared as numbers: 2.9 < 2.11, 570.86 < 570.86.10, and "2.11" == "2.11.0".
// What follows the digits ("+cu130", "a0", ".dev2024") is kept as text and does not take part.
struct Version {
  // At least one number after parse(). A default-constructed Version has none and compares equal to 0.
  std::vector<unsigned> release;
  // Everything after the release number, separators included: ".dev2024", "+cu130"; "" if
  // there is nothing.
  std::string suffix;

  static std::optional<Version> parse(std::string_view text);  // nothing where it does not start with a digit
  // Number `i` of the release from 0; 0 where the version is shorter.
  unsigned part(std::size_t i) const { return i < release.size() ? release[i] : 0; }
  std::string major_minor() const;  // "2.11"
  bool is_prerelease() const;       // suffix starts with a, b, rc or .dev (PEP 440)
};
std::strong_ordering operator<=>(const Version& a, const Version& b);
bool operator==(const Version& a, const Version& b);

// PEP 440's order: 2.0.dev1 < 2.0a1 < 2.0rc1 < 2.0 < 2.0.post1. Local parts ("+cu130") are not compared.
// Two versions that differ in their local part alone compare as equal.
std::strong_ordering pep440_order(const Version& a, const Version& b);
bool is_postrelease(const Version& version);

// Whether the release is one that the specifier takes (PEP 440): ">=2,<3", "==13.2.*", "~=0.1.0". Local parts
// do not count; a version or an operator that is not understood is taken for met.
bool meets(const std::string& installed, const std::string& specifier);

}  // namespace scankit
