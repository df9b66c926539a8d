// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "envspec/spec/fields.h"

namespace scankit {
namespace {
using OrderedJson = nlohmann::ordered_json;

template <class Owner>
OrderedJson form_json(const Field<Owner>& field) {
  const std::string pattern(form_pattern(field.form));
  const bool list = field.form == FieldForm::Gpus || field.form == FieldForm::Code;
  OrderedJson json{{"description", field.text}};
  if (field.form == FieldForm::Schema) {
    json["type"] = "integer";
    json["minimum"] = 1;
    json["maximum"] = kSpecSchema;
    return json;
  }
  json["type"] = list ? "array" : "string";
  if (list)
    json["items"] = {{"type", "string"}, {"pattern", pattern}};
  else if (field.form == FieldForm::Word)
    json["enum"] = field.words;
  else
    json["pattern"] = pattern;
  if (list) json["uniqueItems"] = true;
  json["examples"] =
      OrderedJson::array({list ? OrderedJson::array({field.example}) : OrderedJson(field.example)});
  return json;
}

template <class Owner>
OrderedJson object_json(const std::vector<Field<Owner>>& table) {
  OrderedJson json{
      {"type", "object"}, {"additionalProperties", false}, {"properties", OrderedJson::object()}};
  for (const Field<Owner>& field : table) {
    const auto dot = field.path.find('.');
    if (dot == std::string_view::npos) {
      json["properties"][std::string(field.path)] = form_json(field);
      continue;
    }
    OrderedJson& group = json["properties"][std::string(field.path.substr(0, dot))];
    if (group.is_null())
      group = {{"type", "object"}, {"additionalProperties", false}, {"properties", OrderedJson::object()}};
    group["properties"][std::string(field.path.substr(dot + 1))] = form_json(field);
  }
  return json;
}

template <class Owner>
void add_rows(std::string& out, const std::string& prefix, const std::vector<Field<Owner>>& table) {
  for (const Field<Owner>& field : table) {
    std::string form = "`" + std::string(field.example) + "`";
    if (field.form == FieldForm::Gpus || field.form == FieldForm::Code)
      form = "`[" + std::string(field.example) + "]`";
    if (!field.words.empty()) {
      form.clear();
      for (const std::string_view word : field.words)
        form += (form.empty() ? "`" : ", `") + std::string(word) + "`";
    }
    out +=
        "| `" + prefix + std::string(field.path) + "` | " + form + " | " + std::string(field.text) + " |\n";
  }
}

}  // namespace

std::string spec_schema() {
  OrderedJson json{{"$schema", "http://json-schema.org/draft-07/schema#"},
                   {"$id", "urn:scankit:spec:1"},
                   {"title", "scankit.yaml: what an environment of compiled PyTorch extensions must be"}};
  json.update(object_json(spec_fields()));
  OrderedJson extension = object_json(extension_fields());
  extension["type"] = {"object", "null"};
  json["properties"]["extensions"] = {
      {"description", group_text("extensions")},
      {"type", "object"},
      {"propertyNames", {{"pattern", "^[A-Za-z_][A-Za-z0-9_]*(\\.[A-Za-z_][A-Za-z0-9_]*)*$"}}},
      {"additionalProperties", std::move(extension)}};
  json["required"] = OrderedJson::array({"schema"});
  return json.dump(2) + "\n";
}

std::string spec_fields_markdown() {
  std::string out = "| field | value | what it says |\n|---|---|---|\n";
  add_rows(out, "", spec_fields());
  add_rows(out, "extensions.NAME.", extension_fields());
  return out;
}

}  // namespace scankit
