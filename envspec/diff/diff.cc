// SPDX-License-Identifier: Apache-2.0
#include "envspec/diff/diff.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "doctor/base/columns.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/model/json.h"
#include "doctor/model/redact.h"
#include "doctor/report/escape.h"

// Compares two sides that may know different amounts. The rule throughout: a field counts as a difference
// only if both sides would have said something about it.
namespace scankit::envspec {
namespace {

// The elements of join(): "a, b, c".
std::set<std::string> parts_of(const std::string& list) {
  std::set<std::string> parts;
  for (std::size_t at = 0; at < list.size();) {
    const auto comma = std::min(list.find(", ", at), list.size());
    parts.insert(list.substr(at, comma - at));
    at = comma + 2;
  }
  return parts;
}

// Nothing where one side is a range and the other is not a version. Two ranges agree only as text:
// whether two ranges take the same versions is not computed. A side that is not `whole` demands a subset
// of the other's list.
std::optional<bool> agree(const DiffOperand& a, const DiffOperand& b) {
  if (a.text == b.text) return true;
  if (!a.range.empty() && !b.range.empty()) return false;
  if (!a.range.empty()) return a.range.contains(std::string_view(b.text));
  if (!b.range.empty()) return b.range.contains(std::string_view(a.text));
  if (a.whole && b.whole) return false;
  const auto demanded = parts_of(a.whole ? b.text : a.text), there = parts_of(a.whole ? a.text : b.text);
  return std::ranges::includes(there, demanded);
}

// Whether a field that only the other side has is a difference, because this side would have it too. Specs
// never say what is absent, locks have no fields of extensions, and records nothing of the machine. The
// content of packages is in records alone.
bool tells_of(const Side& side, const std::string& field) {
  const bool of_files = field.starts_with("files."), of_packages = field.starts_with("packages.");
  if (side.kind == "spec" || (of_files && !side.tells_files) || (of_packages && !side.tells_packages))
    return false;
  if (side.kind == "record")
    return of_files || of_packages || field.starts_with("content.") || field == "python.version" ||
           field == "torch.version";
  if (field.starts_with("content.")) return false;
  return side.kind != "lock" || !field.starts_with("extensions.");
}

}  // namespace

namespace {

// An extension that only one side has, although the other side looked for it.
void compare_extensions(const Side& left, const Side& right, std::vector<Difference>& found) {
  for (const std::string& name : left.extensions)
    if (right.looked_for.contains(name) && !right.extensions.contains(name))
      found.push_back({"extensions." + name, say("here"), "", ""});
  for (const std::string& name : right.extensions)
    if (left.looked_for.contains(name) && !left.extensions.contains(name))
      found.push_back({"extensions." + name, "", say("here"), ""});
}

std::optional<Difference> compare_field(const std::string& field, const Side& left, const Side& right) {
  const auto a = left.values.find(field), b = right.values.find(field);
  const bool in_left = a != left.values.end(), in_right = b != right.values.end();
  if ((!in_left && !tells_of(left, field)) || (!in_right && !tells_of(right, field))) return std::nullopt;
  // A machine without a GPU has neither of the two, and a spec that names them is for other machines.
  const bool of_gpus = field == "driver" || field == "gpus";
  const bool with_spec = left.kind == "spec" || right.kind == "spec";
  if (of_gpus && with_spec && (!in_left || !in_right)) return std::nullopt;
  const DiffOperand none;
  const DiffOperand &one = in_left ? a->second : none, &other = in_right ? b->second : none;
  const std::string& extension = in_left ? one.extension : other.extension;
  // Fields of an extension that one side lacks are covered by compare_extensions().
  const bool in_both = left.extensions.contains(extension) && right.extensions.contains(extension);
  if (!extension.empty() && !in_both) return std::nullopt;
  const Message& unknown = one.why_unknown.empty() ? other.why_unknown : one.why_unknown;
  if (!unknown.empty()) return Difference{field, one.text, other.text, unknown};
  const auto same = in_left && in_right ? agree(one, other) : std::optional(false);
  if (same && *same) return std::nullopt;
  return Difference{field, one.text, other.text,
                    same ? "" : say("this is not a version that can be compared")};
}

}  // namespace

std::vector<Difference> differences(const Side& left, const Side& right) {
  std::set<std::string> fields;
  for (const Side* side : {&left, &right})
    for (const auto& [name, value] : side->values) fields.insert(name);
  std::vector<Difference> found;
  for (const std::string& field : fields)
    if (auto one = compare_field(field, left, right)) found.push_back(*std::move(one));
  compare_extensions(left, right, found);
  std::ranges::stable_sort(found, {}, &Difference::field);
  return found;
}

// The redactor learns from all texts before it cleans any, so that a name gets the
// same replacement everywhere.
void redact(const Owner& owner, Side& left, Side& right, std::vector<Difference>& all) {
  TextRedactor redactor;
  std::vector<std::string*> texts = {&left.name, &right.name};
  for (Difference& one : all)
    for (std::string* text : {&one.left, &one.right}) texts.push_back(text);
  for (const std::string* text : texts) {
    if (redaction::is_ipv4(*text)) redactor.learn_fact(*text);  // a version: no field is an address
    redactor.learn_from(*text);
  }
  for (const Difference& one : all) redactor.learn_from(one.why_unknown.english());
  learn(redactor, owner);
  const auto clean = [&](std::string& text) { text = redactor.clean(std::move(text)); };
  for (std::string* text : texts) clean(*text);
  for (Difference& one : all) one.why_unknown.change_texts(clean);
}

std::string diff_text(const Side& left, const Side& right, const std::vector<Difference>& all) {
  std::string text = report::plain("- " + left.name + " (" + left.kind + ")", false) + "\n" +
                     report::plain("+ " + right.name + " (" + right.kind + ")", false) + "\n";
  std::size_t width = 0;
  for (const Difference& one : all) width = std::max(width, columns_of(one.field));
  for (const Difference& one : all) {
    const std::string none = say("none");
    const std::string values = one.why_unknown.empty() ? (one.left.empty() ? none : one.left) + " -> " +
                                                             (one.right.empty() ? none : one.right)
                                                       : say("unknown: {}", one.why_unknown);
    text += "  " + report::plain(in_column(one.field, width + 2) + values, false) + "\n";
  }
  const auto unknown = static_cast<std::size_t>(
      std::ranges::count_if(all, [](const Difference& one) { return !one.why_unknown.empty(); }));
  const std::size_t differ = all.size() - unknown;
  return text +
         say("{}, {}", say_n(differ, "{} difference", "{} differences", differ),
             say_n(unknown, "{} unknown", "{} unknown", unknown)) +
         "\n";
}

// What could not be compared is in "unknown", apart from the differences.
std::string diff_json(const Side& left, const Side& right, const std::vector<Difference>& all) {
  using Json = nlohmann::ordered_json;
  const auto or_null = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  Json json{{"schema", "urn:scankit:env-diff:1"},
            {"left", {{"name", left.name}, {"kind", left.kind}}},
            {"right", {{"name", right.name}, {"kind", right.kind}}},
            {"differences", Json::array()},
            {"unknown", Json::array()}};
  for (const Difference& one : all) {
    Json entry{{"field", one.field}, {"left", or_null(one.left)}, {"right", or_null(one.right)}};
    if (!one.why_unknown.empty()) entry["why"] = one.why_unknown.english();
    json[one.why_unknown.empty() ? "differences" : "unknown"].push_back(std::move(entry));
  }
  return json_document(json);
}

}  // namespace scankit::envspec
