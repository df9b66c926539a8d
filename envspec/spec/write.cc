// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/report/escape.h"
#include "envspec/spec/fields.h"

// Writes scankit.yaml by hand instead of through an emitter, because the comments are half of the file:
// each field has its explanation from the table and the note that `env init` made about it.
namespace scankit {
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

  void comment(const std::string& text) { out_ += "# " + plain(text, false) + "\n"; }
  void gap() { out_ += "\n"; }
  void line(std::size_t indent, const std::string& text, const std::string& remark) {
    std::string row = std::string(indent, ' ') + text;
    if (!remark.empty()) {
      row.append(row.size() < kColumn ? kColumn - row.size() : 1, ' ');
      row += "# " + plain(remark, false);
    }
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

}  // namespace scankit
