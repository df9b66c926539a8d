// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "doctor/base/columns.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/model/json.h"
#include "doctor/report/escape.h"
#include "envspec/spec/fields.h"

// The table of fields.cc as a JSON Schema, as Markdown and as a parser of scankit.yaml.

namespace scankit::envspec {
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
  return dump_json(json, 2) + "\n";
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
      const std::string path = "extensions." + report::plain(node.keys[i].text, false);
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
    return Error{Errc::Unsupported, message("{} is longer than {} KiB", path, kYamlBytes >> 10),
                 message("a spec has a few KiB: is this the right file?")};
  if (!text) return text.error();
  return parse_spec(*text, path);
}

// Writes scankit.yaml by hand instead of through an emitter, because the comments are half of the file:
// each field has its explanation from the table and the note that `env init` made about it.

namespace {

// The line by which YAML language servers in editors find the schema of a file.
constexpr std::string_view kSchemaLine = "yaml-language-server: $schema=";
constexpr std::size_t kColumn = 42;  // of the comments

std::string in_quotes(std::string_view text) { return "\"" + std::string(text) + "\""; }

// "" for a field without a value. As the parser wants it: text that YAML could read as a number is in
// quotes. Words of a fixed list and device code ("sm_90") never look like numbers.
template <class Owner>
std::string value_of(const Field<Owner>& field, const Owner& owner) {
  if (const auto* number = std::get_if<int Owner::*>(&field.place)) return std::to_string(owner.*(*number));
  if (const auto* range = std::get_if<VersionRange Owner::*>(&field.place))
    return (owner.*(*range)).empty() ? "" : in_quotes((owner.*(*range)).text());
  if (const auto* word = std::get_if<std::string Owner::*>(&field.place)) {
    const std::string& text = owner.*(*word);
    return text.empty() || !field.words.empty() ? text : in_quotes(text);
  }
  std::string list;
  for (const std::string& item : owner.*(std::get<std::vector<std::string> Owner::*>(field.place)))
    list += (list.empty() ? "" : ", ") + item;
  return list.empty() ? "" : "[" + list + "]";
}

template <class Owner>
std::string example_of(const Field<Owner>& field) {
  const bool list = field.form == FieldForm::Gpus || field.form == FieldForm::Code;
  if (list) return "[" + std::string(field.example) + "]";
  return field.words.empty() ? in_quotes(field.example) : std::string(field.example);
}

class Writer {
 public:
  explicit Writer(const SpecNotes& notes) : notes_(notes) {}

  void comment(const std::string& text) { out_ += "# " + report::plain(text, false) + "\n"; }
  void gap() { out_ += "\n"; }
  void line(std::size_t indent, const std::string& text, const std::string& remark) {
    std::string row = std::string(indent, ' ') + text;
    if (!remark.empty()) row = in_column(std::move(row), kColumn) + "# " + report::plain(remark, false);
    out_ += row + "\n";
  }

  // `path` is that of the owner, "" or "extensions.NAME." .
  template <class Owner>
  void fields(std::size_t indent, const std::string& path, const std::vector<Field<Owner>>& table,
              const Owner& owner) {
    // The group that the previous field belonged to, and whether this field's group has any value. A
    // field without a value is written as a comment with an example, but only if a note explains why it
    // is missing. In a group without values the group's own line becomes a comment too, and its fields
    // move to the comment's indentation.
    std::string group;
    for (const Field<Owner>& field : table) {
      const std::string value = value_of(field, owner);
      const std::string note = note_of(path + std::string(field.path));
      if (value.empty() && note.empty()) continue;
      const auto dot = field.path.find('.');
      const std::string head(dot == std::string_view::npos ? "" : field.path.substr(0, dot));
      const bool live = has_value(head, table, owner);
      if (head != group && !head.empty()) line(indent, (live ? "" : "# ") + head + ":", "");
      group = head;
      const std::string name(head.empty() ? field.path : field.path.substr(dot + 1));
      const std::size_t inner = head.empty() ? indent : indent + 2;
      const std::string remark =
          note.empty() ? std::string(field.text) : std::string(field.text) + "; " + note;
      if (value.empty())
        line(live || head.empty() ? inner : indent,
             "# " + std::string(live || head.empty() ? 0 : 2, ' ') + name + ": " + example_of(field), remark);
      else
        line(inner, name + ": " + value, remark);
    }
  }
  std::string take() { return std::move(out_); }

 private:
  std::string note_of(const std::string& path) const {
    const auto found = notes_.find(path);
    return found == notes_.end() ? "" : found->second;
  }
  // A group of nothing but comments would be a key without a value.
  template <class Owner>
  static bool has_value(const std::string& group, const std::vector<Field<Owner>>& table,
                        const Owner& owner) {
    return std::ranges::any_of(table, [&](const Field<Owner>& field) {
      return field.path.starts_with(group + ".") && !value_of(field, owner).empty();
    });
  }

  const SpecNotes& notes_;
  std::string out_;
};

// A module may be called "null" or "true", which YAML does not read as text.
std::string key_of(const std::string& module) {
  std::string lower = module;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  });
  const bool word = lower == "null" || lower == "true" || lower == "false";
  return word ? in_quotes(module) : module;
}

}  // namespace

std::string spec_to_yaml(const Spec& spec, const SpecNotes& notes, const std::string& schema) {
  Writer out(notes);
  if (!schema.empty()) out.comment(std::string(kSchemaLine) + schema);
  out.comment(
      "What this environment must be; `scankit env check` compares. Edit it: what is not named is not "
      "demanded.");
  out.comment(
      "Versions: \"2.11.*\", \">=2.11,<3\", \"~=2.11.1\", \"!=2.11.2\". Every field: scankit env schema.");
  out.gap();
  out.fields(0, "", spec_fields(), spec);
  if (spec.extensions.empty()) return out.take();
  out.line(0, "extensions:", std::string(group_text("extensions")));
  for (const ExtensionSpec& extension : spec.extensions) {
    const std::string path = "extensions." + extension.module;
    const auto note = notes.find(path);
    out.line(2, key_of(extension.module) + ":", note == notes.end() ? "" : note->second);
    out.fields(4, path + ".", extension_fields(), extension);
  }
  return out.take();
}

}  // namespace scankit::envspec
