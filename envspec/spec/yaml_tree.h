// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/result.h"

namespace scankit {

// A small tree of YAML from a file that anybody may have written. It refuses what no spec needs and
// what can make a small file large: aliases (and with them merge keys), tags, a second document, and
// keys that are not plain words. These limits bound time and memory; the parser stops as soon as one of
// them is exceeded.
inline constexpr std::size_t kYamlBytes = 256u << 10;
inline constexpr std::size_t kYamlNodes = 10'000;
inline constexpr std::size_t kYamlDepth = 8;

// A value with its position. In a map, keys[i] belongs to items[i]; keys are unique, and come in
// the file's order.
struct YamlNode {
  enum class Kind : std::uint8_t { Null, Scalar, List, Map };
  Kind kind = Kind::Null;
  unsigned line = 0, column = 0;  // 1-based
  std::string text;               // of a scalar
  bool quoted = false;            // "3.10", not 3.10
  std::vector<YamlNode> items;    // of a list; the values of a map
  std::vector<YamlNode> keys;     // of a map: scalars, each another

  bool is_number() const;  // as YAML 1.2 reads it (core schema): 3.10 is 3.1, and true no word
  bool is_bool() const;
};

// "scankit.yaml:7:10", the place that a message is about.
std::string yaml_place(const std::string& name, const YamlNode& node);

// Errc::Malformed with line and column. `name` is what messages call the file.
Result<YamlNode> parse_yaml(std::string_view text, const std::string& name);

}  // namespace scankit
