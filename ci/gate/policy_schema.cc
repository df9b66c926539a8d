// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "ci/gate/policy_fields.h"

namespace scankit {
namespace {
using Json = nlohmann::ordered_json;

template <class Owner>
Json form_json(const PolicyField<Owner>& field) {
  Json json{{"description", field.text}};
  switch (field.form) {
    case PolicyForm::Schema:
      json.update({{"type", "integer"}, {"minimum", 1}, {"maximum", kPolicySchema}});
      break;
    case PolicyForm::Word:
      json.update({{"type", "string"}, {"enum", field.words}});
      break;
    case PolicyForm::Flag:
      json["type"] = "boolean";
      break;
    case PolicyForm::Seconds:
      json.update({{"type", "integer"}, {"minimum", 1}, {"maximum", kLongestTimeout}});
      break;
    case PolicyForm::Date:
      json.update(
          {{"type", "string"}, {"pattern", kDatePattern}, {"examples", Json::array({field.example})}});
      break;
    case PolicyForm::Text:
      json.update({{"type", "string"}, {"minLength", 1}, {"examples", Json::array({field.example})}});
      break;
    case PolicyForm::Args:
      json.update({{"type", "array"}, {"items", {{"type", {"string", "number", "boolean"}}}}});
      break;
    case PolicyForm::Names:
      json.update({{"type", "array"}, {"items", {{"type", "string"}, {"pattern", kNamePattern}}}});
      break;
  }
  return json;
}

template <class Owner>
Json object_json(const std::vector<PolicyField<Owner>>& table) {
  Json json{{"type", "object"}, {"additionalProperties", false}, {"properties", Json::object()}};
  for (const auto& field : table) json["properties"][std::string(field.name)] = form_json(field);
  return json;
}

// The first word is an option, and every option is one that may be set.
Json step_json(const PolicyStep& step) {
  Json json = object_json(step_fields());
  std::string description("scankit ");
  json["description"] = description += step.command;
  std::string known;
  for (const std::string& option : step.options) known += (known.empty() ? "" : "|") + option;
  json["properties"]["args"]["items"]["pattern"] = "^(?!-)|^(" + known + ")(=|$)";
  return json;
}

template <class Owner>
void add_rows(std::string& out, const std::string& prefix, const std::vector<PolicyField<Owner>>& table) {
  for (const auto& field : table) {
    std::string form = "`" + std::string(field.example) + "`";
    if (!field.words.empty()) form.clear();
    for (const std::string_view word : field.words)
      form += (form.empty() ? "`" : ", `") + std::string(word) + "`";
    out +=
        "| `" + prefix + std::string(field.name) + "` | " + form + " | " + std::string(field.text) + " |\n";
  }
}

}  // namespace

std::string policy_schema() {
  Json json{{"$schema", "http://json-schema.org/draft-07/schema#"},
            {"$id", "urn:scankit:policy:1"},
            {"title", "scankit-ci.yaml: what a run of scankit ci may end with"}};
  json.update(object_json(policy_fields()));
  Json slugs = Json::array();
  for (const CauseInfo& cause : all_causes()) slugs.push_back(cause.slug);
  Json rule = object_json(cause_fields());
  rule["type"] = {"object", "null"};
  rule["dependencies"] = {{"allowed_until", {"reason"}}, {"reason", {"allowed_until"}}};
  json["properties"]["causes"] = {
      {"description", "causes by their slug, as scankit explain --list names them"},
      {"type", "object"},
      {"propertyNames", {{"enum", std::move(slugs)}}},
      {"additionalProperties", std::move(rule)}};
  Json& steps = json["properties"]["steps"] = {{"description", "the commands that a run is made of"},
                                               {"type", "object"},
                                               {"additionalProperties", false},
                                               {"properties", Json::object()}};
  for (const PolicyStep& step : policy_steps()) steps["properties"][std::string(step.name)] = step_json(step);
  json["required"] = Json::array({"schema"});
  return json.dump(2) + "\n";
}

std::string policy_fields_markdown() {
  std::string out = "| field | value | what it says |\n|---|---|---|\n";
  add_rows(out, "", policy_fields());
  add_rows(out, "causes.SLUG.", cause_fields());
  add_rows(out, "steps.NAME.", step_fields());
  return out;
}

}  // namespace scankit
