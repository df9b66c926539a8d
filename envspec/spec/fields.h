// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "doctor/base/result.h"
#include "envspec/spec/spec.h"

namespace scankit::envspec {

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

// Values of the fields, read out of YAML: each function says where the value is and what was expected.
// `name` is what messages call the file, `path` is the full path of the field
// ("extensions.mamba.code"), and `example` is a value that the message suggests.

enum class FieldForm : std::uint8_t {
  Schema,  // the number of this file's form
  Range,   // ">=2.11,<3"
  Word,    // one of `words`
  Name,    // of a package, a tag
  Gpus,    // ["sm_90"]
  Code,    // ["sm_90", "compute_75"]
};

// The one table that the parser, the writer, the JSON Schema and the README are made of.
template <class Owner>
struct Field {
  std::string_view path;  // "torch.version": `version` below `torch`
  FieldForm form;
  std::vector<std::string_view> words;
  std::string_view text;  // the comment on its line, and its description in the schema
  std::string_view example;
  std::variant<int Owner::*, VersionRange Owner::*, std::string Owner::*, std::vector<std::string> Owner::*>
      place;
};

const std::vector<Field<Spec>>& spec_fields();
const std::vector<Field<ExtensionSpec>>& extension_fields();  // below extensions.NAME

// The comment above a group of fields ("torch", "extensions"); "" for none.
std::string_view group_text(std::string_view group);

// A regular expression (ECMA 262, for the schema) of what a form takes, "" for Schema and Word. The parser is
// at least as strict; a test holds both to the same examples.
std::string_view form_pattern(FieldForm form);

// `scankit env schema`: JSON Schema, draft 7, which the editors' YAML server reads.
std::string spec_schema();
// The table of envspec/README.md.
std::string spec_fields_markdown();

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
Result<VersionRange> form_of_range(const std::string& name, const YamlNode& node, const std::string& path,
                                   std::string_view example);
Result<std::string> form_of_word(const std::string& name, const YamlNode& node, const std::string& path,
                                 const std::vector<std::string_view>& words, std::string_view example);
Result<std::vector<std::string>> form_of_list(const std::string& name, const YamlNode& node,
                                              const std::string& path, FieldForm form,
                                              std::string_view example);

template <class Owner>
Result<void> read_field(const std::string& name, const YamlNode& node, const std::string& path,
                        const Field<Owner>& field, Owner& owner) {
  if (const auto* number = std::get_if<int Owner::*>(&field.place)) {
    SCANKIT_TRY(owner.*(*number), form_of_schema(name, node));
  } else if (const auto* range = std::get_if<VersionRange Owner::*>(&field.place)) {
    SCANKIT_TRY(owner.*(*range), form_of_range(name, node, path, field.example));
  } else if (const auto* word = std::get_if<std::string Owner::*>(&field.place)) {
    SCANKIT_TRY(owner.*(*word), form_of_word(name, node, path, field.words, field.example));
  } else if (const auto* list = std::get_if<std::vector<std::string> Owner::*>(&field.place)) {
    SCANKIT_TRY(owner.*(*list), form_of_list(name, node, path, field.form, field.example));
  }
  return {};
}

}  // namespace scankit::envspec
