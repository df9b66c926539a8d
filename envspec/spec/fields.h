// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/yaml/yaml.h"
#include "envspec/spec/spec.h"

namespace scankit::envspec {

using yaml::form_of_schema;
using yaml::is_distribution_name;
using yaml::is_module_name;
using yaml::known_schema;
using yaml::kYamlBytes;
using yaml::parse_yaml;
using yaml::unknown_field;
using yaml::wrong_form;
using yaml::yaml_place;
using yaml::YamlNode;

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
