// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <type_traits>

#include "envspec/spec/fields.h"
#include "envspec/spec/yaml_tree.h"

// Values of the fields, read out of YAML: each function says where and what was expected.
namespace scankit {

Error wrong_form(const std::string& name, const YamlNode& node, const std::string& path,
                 const std::string& expected);
// A key that is no field: the nearest of `known`, or all of them. `field` is the key with what it stands
// below.
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

}  // namespace scankit
