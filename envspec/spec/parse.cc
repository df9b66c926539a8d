// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/report/escape.h"
#include "envspec/spec/fields.h"
#include "envspec/spec/yaml_tree.h"

// The table of fields.cc as a JSON Schema, as Markdown and as a parser of scankit.yaml.
namespace scankit {
namespace {
using OrderedJson = nlohmann::ordered_json;

// The schema of one field. Draft 7 is what the YAML language server of editors reads.
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

// A schema of keys with values, one level of groups deep: "torch.version" becomes `version` in the
// properties of `torch`. "additionalProperties": false makes editors underline a misspelled key.
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

// Rows of the README's table.
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
  // "mamba_ssm:" without fields is null in YAML, and demands the extension by its name alone.
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

namespace {

// The first word of what is left of a path below a prefix: "torch" of "torch.version".
std::string_view first_word(std::string_view path) { return path.substr(0, path.find('.')); }

class SpecReader {
 public:
  SpecReader(std::string name, Spec& spec) : name_(std::move(name)), spec_(spec) {}

  Result<void> top(const YamlNode& root) {
    if (root.kind != YamlNode::Kind::Map)
      return wrong(root, "", say("expected keys with values, such as torch:"));
    SCANKIT_CHECK(known_schema(name_, root, kSpecSchema));
    return map(root, "", "", spec_fields(), spec_);
  }

 private:
  Error wrong(const YamlNode& node, const std::string& path, const std::string& expected) const {
    return wrong_form(name_, node, path, expected);
  }

  // Reads the keys of one map. `path` names the fields in messages and in Spec::lines, `prefix` in the
  // table: below "extensions.mamba" the path is "extensions.mamba." and the prefix is "". A key that is
  // the first word of several fields ("torch") opens a group, whose map is read by the same function.
  template <class Owner>
  Result<void> map(const YamlNode& node, const std::string& path, const std::string& prefix,
                   const std::vector<Field<Owner>>& fields, Owner& owner) {
    if (node.kind != YamlNode::Kind::Map) return wrong(node, path, say("expected keys with values below it"));
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      const std::string& key = node.keys[i].text;
      const std::string here = path.empty() ? key : path + "." + key, wanted = prefix + key;
      spec_.lines[here] = node.keys[i].line;
      const auto field = std::ranges::find(fields, std::string_view(wanted), &Field<Owner>::path);
      if (field != fields.end()) {
        SCANKIT_CHECK(read_field(name_, node.items[i], here, *field, owner));
      } else if (is_group(wanted, fields)) {
        SCANKIT_CHECK(map(node.items[i], here, wanted + ".", fields, owner));
      } else if (path.empty() && key == "extensions") {
        SCANKIT_CHECK(extensions(node.items[i]));
      } else {
        return unknown(node.keys[i], path, prefix, fields);
      }
    }
    return {};
  }

  // Whether a key such as "torch" starts the path of any field.
  template <class Owner>
  static bool is_group(const std::string& wanted, const std::vector<Field<Owner>>& fields) {
    return std::ranges::any_of(fields,
                               [&](const auto& field) { return field.path.starts_with(wanted + "."); });
  }

  // Offers only the keys of this level. Fields of one group are adjacent in the table, so that unique()
  // removes every repetition of a group's name.
  template <class Owner>
  Error unknown(const YamlNode& key, const std::string& path, const std::string& prefix,
                const std::vector<Field<Owner>>& fields) const {
    std::vector<std::string> known;
    for (const Field<Owner>& field : fields)
      if (field.path.starts_with(prefix)) known.emplace_back(first_word(field.path.substr(prefix.size())));
    if (path.empty()) known.emplace_back("extensions");
    known.erase(std::unique(known.begin(), known.end()), known.end());
    return unknown_field(name_, key, path.empty() ? key.text : path + "." + key.text, known);
  }

  // The names of modules are the user's, so that this level has no row in the table.
  Result<void> extensions(const YamlNode& node) {
    if (node.kind != YamlNode::Kind::Map)
      return wrong(node, "extensions", say("expected names of modules with their fields below it"));
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      const std::string path = "extensions." + plain(node.keys[i].text, false);
      if (!is_module_name(node.keys[i].text))
        return wrong(node.keys[i], path, say("expected the name by which Python imports a module"));
      spec_.lines[path] = node.keys[i].line;
      ExtensionSpec extension;
      extension.module = node.keys[i].text;
      // A name alone demands that the module is there.
      if (node.items[i].kind != YamlNode::Kind::Null)
        SCANKIT_CHECK(map(node.items[i], path, "", extension_fields(), extension));
      spec_.extensions.push_back(std::move(extension));
    }
    return {};
  }

  std::string name_;
  Spec& spec_;
};

}  // namespace

Result<Spec> parse_spec(std::string_view text, const std::string& name) {
  SCANKIT_TRY(const YamlNode root, parse_yaml(text, name));
  Spec spec;
  spec.file = name;
  SCANKIT_CHECK(SpecReader(name, spec).top(root));
  return spec;
}

Result<Spec> read_spec(const std::string& path) {
  // The limit also stops an endless pipe.
  auto text = read_whole_file(path, kYamlBytes, Accept::FilesAndPipes);
  if (!text && text.error().code == Errc::Unsupported)
    return Error{Errc::Unsupported, say("{} is longer than {} KiB", path, kYamlBytes >> 10),
                 say("a spec has a few KiB: is this the right file?")};
  if (!text) return text.error();
  return parse_spec(*text, path);
}

}  // namespace scankit
