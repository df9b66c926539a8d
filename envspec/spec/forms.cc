// SPDX-License-Identifier: Apache-2.0
#include "envspec/spec/forms.h"

#include <algorithm>
#include <charconv>

#include "doctor/base/nearest.h"
#include "doctor/base/say.h"
#include "doctor/probes/python/python_text.h"
#include "doctor/report/plain.h"
#include "doctor/report/words.h"

namespace scankit {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// "sm_90", "compute_75", "sm_90a"; the pattern of form_pattern().
bool is_code(std::string_view text, bool gpu) {
  for (const std::string_view prefix : {"sm_", "compute_", "lto_"}) {
    if (!text.starts_with(prefix)) continue;
    if (gpu && prefix != "sm_") return false;
    text.remove_prefix(prefix.size());
    if (!gpu && (text.ends_with('a') || text.ends_with('f'))) text.remove_suffix(1);
    return (text.size() == 2 || text.size() == 3) && text[0] != '0' && std::ranges::all_of(text, is_digit);
  }
  return false;
}

std::string listed(const std::vector<std::string_view>& words) {
  std::string text;
  for (const std::string_view word : words) text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

// What stands in the file, for a message of one line.
std::string shown(const std::string& text) {
  constexpr std::size_t kMost = 60;
  const std::string all = plain(text, false);
  return all.size() <= kMost ? all : plain(text.substr(0, kMost), false) + "...";
}

// Text in quotes, or text that YAML reads as text.
Result<std::string> text_of(const std::string& name, const YamlNode& node, const std::string& path,
                            std::string_view example) {
  if (node.kind == YamlNode::Kind::Null)
    return wrong_form(name, node, path, say("a value such as \"{}\" is expected, or no such line", example));
  if (node.kind != YamlNode::Kind::Scalar)
    return wrong_form(name, node, path,
                      say("one value such as \"{}\" is expected, and no list or keys", example));
  if (node.is_number())
    return wrong_form(
        name, node, path,
        say("{} is a number, of which YAML may drop a zero; write \"{}\" in quotes", node.text, node.text));
  if (node.is_bool())
    return wrong_form(name, node, path,
                      say("{} is true or false; text such as \"{}\" is expected", node.text, example));
  return node.text;
}

}  // namespace

Error wrong_form(const std::string& name, const YamlNode& node, const std::string& path,
                 const std::string& expected) {
  const std::string where = path.empty() ? yaml_place(name, node) : yaml_place(name, node) + ": " + path;
  return {Errc::Malformed, where + ": " + expected, ""};
}

Error unknown_field(const std::string& name, const YamlNode& key, const std::string& field,
                    const std::vector<std::string>& known) {
  const auto near = nearest_word(key.text, known);
  return {Errc::Malformed, say("{}: no field is called \"{}\"", yaml_place(name, key), plain(field, false)),
          near.empty() ? say("known here: {}", joined(known)) : say("did you mean \"{}\"?", near)};
}

Result<void> known_schema(const std::string& name, const YamlNode& root, int newest) {
  for (std::size_t i = 0; i < root.keys.size(); ++i) {
    if (root.keys[i].text != "schema") continue;
    SCANKIT_TRY(const int schema, form_of_schema(name, root.items[i]));
    if (schema <= newest) return {};
    return Error{Errc::Unsupported,
                 say("{}: this is schema {}, and this scankit knows up to {}",
                     yaml_place(name, root.items[i]), schema, newest),
                 say("use a newer scankit")};
  }
  return Error{Errc::Malformed, say("{} does not say which schema it has", name),
               say("write \"schema: {}\" as its first line", newest)};
}

bool is_distribution_name(std::string_view text) {
  constexpr std::size_t kLongest = 128;
  const auto part = [](char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '-'; };
  return !text.empty() && text.size() <= kLongest && text[0] != '.' && text[0] != '-' && text[0] != '_' &&
         std::ranges::all_of(text, part);
}

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
  if (!fits)
    return wrong_form(name, node, "schema", say("a whole number is expected, such as {}", kSpecSchema));
  return number;
}

Result<VersionRange> form_of_range(const std::string& name, const YamlNode& node, const std::string& path,
                                   std::string_view example) {
  SCANKIT_TRY(const std::string text, text_of(name, node, path, example));
  auto range = VersionRange::parse(text);
  if (range) return range;
  Error error = wrong_form(name, node, path, range.error().message);
  error.hint = range.error().hint;
  return error;
}

Result<std::string> form_of_word(const std::string& name, const YamlNode& node, const std::string& path,
                                 const std::vector<std::string_view>& words, std::string_view example) {
  SCANKIT_TRY(std::string text, text_of(name, node, path, example));
  if (words.empty())
    return is_distribution_name(text)
               ? Result<std::string>(std::move(text))
               : wrong_form(name, node, path, say("\"{}\" is no name such as \"{}\"", shown(text), example));
  if (std::ranges::find(words, text) != words.end()) return text;
  return wrong_form(name, node, path, say("\"{}\" is none of: {}", shown(text), listed(words)));
}

Result<std::vector<std::string>> form_of_list(const std::string& name, const YamlNode& node,
                                              const std::string& path, FieldForm form,
                                              std::string_view example) {
  if (node.kind != YamlNode::Kind::List)
    return wrong_form(name, node, path, say("a list is expected, such as [{}]", example));
  std::vector<std::string> values;
  for (const YamlNode& item : node.items) {
    SCANKIT_TRY(std::string text, text_of(name, item, path, example));
    if (!is_code(text, form == FieldForm::Gpus))
      return wrong_form(
          name, item, path,
          form == FieldForm::Gpus
              ? say("\"{}\" is no GPU: sm_ and its compute capability without the dot is expected, "
                    "such as sm_90 for 9.0",
                    text)
              : say("\"{}\" is no device code such as sm_90 or compute_75", shown(text)));
    if (std::ranges::find(values, text) != values.end())
      return wrong_form(name, item, path, say("\"{}\" stands in the list twice", shown(text)));
    values.push_back(std::move(text));
  }
  return values;
}

}  // namespace scankit
