// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>

#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/yaml/yaml.h"

namespace scankit::yaml {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

}  // namespace

std::string shown(const std::string& text) {
  constexpr std::size_t kMost = 60;
  const std::string all = printable(text);
  return all.size() <= kMost ? all : printable(std::string_view(text).substr(0, kMost)) + "...";
}

Result<std::string> text_of(const std::string& name, const YamlNode& node, const std::string& path,
                            std::string_view example) {
  if (node.kind == YamlNode::Kind::Null)
    return wrong_form(name, node, path,
                      message("expected a value such as \"{}\", or remove the line", example));
  if (node.kind != YamlNode::Kind::Scalar)
    return wrong_form(name, node, path,
                      message("expected one value such as \"{}\", not a list or keys", example));
  if (node.is_number())
    return wrong_form(name, node, path,
                      message("{} is a number, whose last zero YAML may drop; write \"{}\" in quotes",
                              node.text, node.text));
  if (node.is_bool())
    return wrong_form(name, node, path,
                      message("{} is true or false; expected text such as \"{}\"", node.text, example));
  return node.text;
}

Error wrong_form(const std::string& name, const YamlNode& node, const std::string& path,
                 const Message& expected) {
  const std::string where = path.empty() ? yaml_place(name, node) : yaml_place(name, node) + ": " + path;
  return {Errc::Malformed, message("{}: {}", where, expected), ""};
}

Error unknown_field(const std::string& name, const YamlNode& key, const std::string& field,
                    const std::vector<std::string>& known) {
  const auto near = nearest_word(key.text, known);
  return {Errc::Malformed, message("{}: unknown field \"{}\"", yaml_place(name, key), printable(field)),
          near.empty() ? message("valid here: {}", join(known)) : message("did you mean \"{}\"?", near)};
}

// Searches the keys itself instead of using the table, because a file of a newer schema must be
// reported as such before its other keys are.
Result<void> known_schema(const std::string& name, const YamlNode& root, int newest) {
  for (std::size_t i = 0; i < root.keys.size(); ++i) {
    if (root.keys[i].text != "schema") continue;
    SCANKIT_TRY(const int schema, form_of_schema(name, root.items[i]));
    if (schema <= newest) return {};
    return Error{Errc::Unsupported,
                 message("{}: this is schema {}, and this scankit supports up to {}",
                         yaml_place(name, root.items[i]), schema, newest),
                 message("use a newer scankit")};
  }
  return Error{Errc::Malformed, message("{} does not say which schema it has", name),
               message("write \"schema: {}\" as its first line", newest)};
}

// The letters of PEP 508 names, which must start with a letter or digit.
bool is_distribution_name(std::string_view text) {
  constexpr std::size_t kLongest = 128;
  const auto part = [](char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '-'; };
  return !text.empty() && text.size() <= kLongest && text[0] != '.' && text[0] != '-' && text[0] != '_' &&
         std::ranges::all_of(text, part);
}

// ASCII identifiers with dots between them. Python also allows Unicode identifiers, which
// no extension uses.
bool is_module_name(std::string_view name) {
  constexpr std::size_t kLongest = 256;
  bool start = true;
  for (const char c : name) {
    if (!is_letter(c) && (start || (!is_digit(c) && c != '.'))) return false;
    start = c == '.';
  }
  return !start && name.size() <= kLongest;
}

Result<int> form_of_schema(const std::string& name, const YamlNode& node) {
  int number = 0;
  const char* end = node.text.data() + node.text.size();
  const auto parsed = std::from_chars(node.text.data(), end, number);
  const bool fits = node.is_number() && parsed.ec == std::errc() && parsed.ptr == end && number > 0;
  if (!fits) return wrong_form(name, node, "schema", message("expected a whole number, such as 1"));
  return number;
}

}  // namespace scankit::yaml
