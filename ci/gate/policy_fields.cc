// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "ci/gate/policy.h"
#include "doctor/model/json.h"

// The tables of the policy's fields and of the steps, and what is generated from them: the JSON Schema and
// the table of ci/README.md. Texts in the tables appear there word for word.
namespace scankit::gate {

const std::vector<PolicyField<Policy>>& policy_fields() {
  static const std::vector<PolicyField<Policy>> fields = {
      {"schema",
       PolicyForm::Schema,
       {},
       "the schema version of this file; an older scankit rejects a newer one",
       "1",
       &Policy::schema},
      {"fail_on",
       PolicyForm::Word,
       {"error", "warning", "note"},
       "the lowest severity that fails, for causes that are not listed below",
       "error",
       &Policy::fail_on},
      {"allow_empty",
       PolicyForm::Flag,
       {},
       "true passes an environment with nothing to check; otherwise the exit status is 4",
       "true",
       &Policy::allow_empty},
      {"require",
       PolicyForm::Names,
       {},
       "modules and packages that must be installed; a missing one fails the run",
       "[torch, selective_scan_cuda]",
       &Policy::required},
      {"record",
       PolicyForm::Records,
       {},
       "environments that must still be what the record of env create or env sync says: one directory, a "
       "list, or directories with the lock that each is made from (default: scankit.lock, if it exists)",
       "[.venv, /opt/train]",
       &Policy::records},
  };
  return fields;
}

const std::vector<PolicyField<CauseRule>>& cause_fields() {
  static const std::vector<PolicyField<CauseRule>> fields = {
      {"severity",
       PolicyForm::Word,
       {"error", "warning", "note"},
       "error (the default) fails, warning and note do not",
       "warning",
       &CauseRule::severity},
      {"allowed_until",
       PolicyForm::Date,
       {},
       "the last day, in UTC, on which it does not fail; needs a reason",
       "2027-01-31",
       &CauseRule::allowed_until},
      {"reason",
       PolicyForm::Text,
       {},
       "why it is allowed, for the readers of the report",
       "the images are replaced in January",
       &CauseRule::reason},
  };
  return fields;
}

const std::vector<PolicyField<StepRule>>& step_fields() {
  static const std::vector<PolicyField<StepRule>> fields = {
      {"enabled",
       PolicyForm::Flag,
       {},
       "false skips the step; true fails it if there is nothing to check; the default runs it if there is "
       "something to check",
       "true",
       &StepRule::enabled},
      {"timeout", PolicyForm::Seconds, {}, "time limit in seconds", "300", &StepRule::timeout_s},
      {"args",
       PolicyForm::Args,
       {},
       "options of that command that select what to check",
       "[--module, causal_conv1d_cuda]",
       &StepRule::args},
  };
  return fields;
}

// The steps in the order in which they run: records come first, because they take milliseconds; then
// doctor, because what it sees decides whether validate has anything to do.
const std::vector<PolicyStep>& policy_steps() {
  static const std::vector<PolicyStep> steps = {
      // The seconds are the default time limit.
      {"record", "env check --record", &Policy::record, 60, {"--redact"}},
      {"doctor",
       "doctor",
       &Policy::doctor,
       300,
       {"--all", "--no-import", "--module", "--sources", "--timeout", "--root", "--so", "--from", "--gpu",
        "--driver", "--redact"}},
      {"env_check",
       "env check",
       &Policy::env_check,
       300,
       {"--spec", "--lock", "--cache-dir", "--root", "--from"}},
      {"validate",
       "validate",
       &Policy::validate,
       900,
       {"--module", "--against", "--baseline", "--quick", "--full", "--device", "--seed", "--case",
        "--deterministic", "--no-timing"}},
  };
  return steps;
}

namespace {
using Json = nlohmann::ordered_json;

// One directory, a list of them, or each with its lock; null is the lock of the current directory.
Json records_json() {
  const Json path{{"type", "string"}, {"minLength", 1}, {"pattern", "^(?!-)"}};
  return Json::array({path,
                      {{"type", "array"}, {"minItems", 1}, {"items", path}},
                      {{"type", "object"},
                       {"minProperties", 1},
                       {"propertyNames", {{"minLength", 1}, {"pattern", "^(?!-)"}}},
                       {"additionalProperties", {{"type", {"string", "null"}}, {"minLength", 1}}}}});
}

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
    case PolicyForm::Records:
      json["oneOf"] = records_json();
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

// The schema of one step. The pattern lets every word without a dash pass (values), and only known
// options; that a value cannot come first is checked by the parser alone.
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
  // Draft 7: each of the two keys needs the other.
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
  return dump_json(json, 2) + "\n";
}

std::string policy_fields_markdown() {
  std::string out = "| field | value | what it says |\n|---|---|---|\n";
  add_rows(out, "", policy_fields());
  add_rows(out, "causes.SLUG.", cause_fields());
  add_rows(out, "steps.NAME.", step_fields());
  return out;
}

}  // namespace scankit::gate
