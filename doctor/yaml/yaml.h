// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/result.h"

// The reader of the small YAML files that people write: scankit.yaml, scankit-ci.yaml, scankit.module.yaml.
namespace scankit::yaml {

// A small tree of YAML from a file that anybody may have written. It refuses what no such file needs
// and what can make a small file large: aliases (and with them merge keys), tags, a second document, and
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

// Values: each function says where the value is and what was expected. `name` is what messages call the
// file, `path` is the full path of the field ("extensions.mamba.code").

Error wrong_form(const std::string& name, const YamlNode& node, const std::string& path,
                 const Message& expected);
// A key that no field has. The hint is the nearest of `known`, or all of them. `field` is the key with the
// path above it.
Error unknown_field(const std::string& name, const YamlNode& key, const std::string& field,
                    const std::vector<std::string>& known);
// That the file says which form it has, and that it is no newer than `newest`. Asked before everything else:
// a newer form may have keys and values that look wrong to us.
Result<void> known_schema(const std::string& name, const YamlNode& root, int newest);
bool is_distribution_name(std::string_view name);  // "mamba-ssm"; of tags too
bool is_module_name(std::string_view name);        // "torchvision._C"

Result<int> form_of_schema(const std::string& name, const YamlNode& node);
// The text of a scalar. A plain number is refused even though its text is known: other YAML readers turn 3.10
// into 3.1, and the file would mean different things to different tools. `example` is what a message suggests.
Result<std::string> text_of(const std::string& name, const YamlNode& node, const std::string& path,
                            std::string_view example);
// The file's text for a message: one line, and not long.
std::string shown(const std::string& text);

}  // namespace scankit::yaml
