// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "envspec/spec/spec.h"

namespace scankit {

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
  std::string_view text;  // the comment beside it, and its description in the schema
  std::string_view example;
  std::variant<int Owner::*, VersionRange Owner::*, std::string Owner::*, std::vector<std::string> Owner::*>
      place;
};

const std::vector<Field<Spec>>& spec_fields();
const std::vector<Field<ExtensionSpec>>& extension_fields();  // below extensions.NAME

// What stands above a group of fields ("torch", "extensions"); "" for none.
std::string_view group_text(std::string_view group);

// A regular expression (ECMA 262, for the schema) of what a form takes, "" for Schema and Word. The parser is
// at least as strict; a test holds both to the same examples.
std::string_view form_pattern(FieldForm form);

// `scankit env schema`: JSON Schema, draft 7, which the editors' YAML server reads.
std::string spec_schema();
// The table of envspec/README.md.
std::string spec_fields_markdown();

}  // namespace scankit
