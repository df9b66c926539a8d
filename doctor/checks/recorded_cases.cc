// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/recorded_cases.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>

#include "doctor/checks/check.h"
#include "doctor/model/snapshot.h"

namespace scankit::checks {
namespace {
using Json = nlohmann::json;

// Read at run time from the source tree, so only tests can use this file.
const std::filesystem::path kTests = std::filesystem::path(SCANKIT_SOURCE_DIR) / "doctor/tests";
constexpr std::string_view kSite = "/home/user/project/.venv/lib/python3.11/site-packages";

// A quoted scalar is a string. A plain one is what JSON makes of it, if anything: numbers, true, false
// and null of YAML 1.2's core schema are those of JSON.
Json json_of(const YAML::Node& node) {
  if (node.IsMap()) {
    Json object = Json::object();
    for (const auto& entry : node) object[entry.first.as<std::string>()] = json_of(entry.second);
    return object;
  }
  if (node.IsSequence()) {
    Json array = Json::array();
    for (const auto& entry : node) array.push_back(json_of(entry));
    return array;
  }
  if (node.IsNull()) return nullptr;
  const bool quoted = node.Tag() == "!";
  const Json plain = quoted ? Json(Json::value_t::discarded) : Json::parse(node.Scalar(), nullptr, false);
  return plain.is_primitive() && !plain.is_string() && !plain.is_discarded() ? plain : Json(node.Scalar());
}

// Each file once: a process that runs every case would spend half of its time in the YAML parser.
const Json& read_yaml(const std::string& name) {
  static std::map<std::string, Json> files;
  const auto known = files.find(name);
  if (known != files.end()) return known->second;
  return files.emplace(name, json_of(YAML::LoadFile(kTests / "cases" / (name + ".yaml")))).first->second;
}

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
}

// Replaces every string of `value` by what `change` returns for it, which need not be a string.
template <class Change>
Json each_text(const Json& value, const Change& change) {
  if (value.is_string()) return change(value.get<std::string>());
  Json changed = value;
  if (value.is_structured())
    for (Json& inner : changed) inner = each_text(inner, change);
  return changed;
}

// "$NAME" and "$NAME ARGUMENT" are replaced by an entry of fragments.yaml, in which "$1" is the argument;
// "$SITE" is replaced by the site-packages directory of the recorded machines.
Json expanded(const Json& value, const Json& fragments) {
  return each_text(value, [&](std::string text) -> Json {
    const auto space = text.find(' ');
    const std::string name = text.substr(0, space),
                      argument = space == std::string::npos ? "" : text.substr(space + 1);
    if (!name.starts_with('$') || !fragments.contains(name.substr(1))) {
      replace_all(text, "$SITE", kSite);
      return text;
    }
    const Json given = each_text(fragments.at(name.substr(1)), [&](std::string inner) -> Json {
      const bool number = argument.find_first_not_of("0123456789") == std::string::npos;
      if (inner == "$1" && number) return std::stoi(argument);
      replace_all(inner, "$1", argument);
      return inner;
    });
    return expanded(given, Json::object());
  });
}

}  // namespace

// Reads the names without a YAML parser, for speed: every test process asks for all names and
// runs one case.
std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kTests / "cases")) {
    const std::string check = entry.path().stem();
    if (entry.path().extension() != ".yaml" || check == "fragments") continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      if (line.empty() || line[0] == ' ' || line[0] == '#' || !line.ends_with(':')) continue;
      line.pop_back();
      std::erase(line, '"');
      names.push_back(check + "." + line);
    }
  }
  std::ranges::sort(names);
  return names;
}

Json case_file(const std::string& name) {
  const auto dot = name.find('.');
  return expanded(read_yaml(name.substr(0, dot)).at(name.substr(dot + 1)), read_yaml("fragments"));
}

// The recorded machine with the changes of the case: first the merge patch, then the values at
// JSON pointers.
Json machine_of(const Json& test) {
  const auto base = test.value("base", std::string("cpu_torch211"));
  std::ifstream in(kTests / "machines" / base / "snapshot.json");
  Json machine = Json::parse(in);
  if (test.contains("patch")) machine.merge_patch(test["patch"]);
  if (test.contains("at"))
    for (const auto& [pointer, value] : test["at"].items()) machine[Json::json_pointer(pointer)] = value;
  return machine;
}

Report diagnosed(const Json& test) {
  const auto snapshot = snapshot_from_json(machine_of(test).dump());
  if (!snapshot) throw std::runtime_error(english(snapshot.error().message));
  Report report = diagnose(*snapshot);
  return report;
}

}  // namespace scankit::checks
