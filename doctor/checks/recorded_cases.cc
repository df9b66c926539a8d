// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/recorded_cases.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "doctor/checks/runner.h"
#include "doctor/model/snapshot_json.h"
#include "doctor/report/fold.h"

namespace scankit {
namespace {
using Json = nlohmann::json;

const std::filesystem::path kTests = std::filesystem::path(SCANKIT_SOURCE_DIR) / "doctor/tests";

Json read_json(const std::filesystem::path& path) {
  std::ifstream in(path);
  return Json::parse(in);
}

}  // namespace

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kTests / "cases"))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem());
  std::ranges::sort(names);
  return names;
}

Json case_file(const std::string& name) { return read_json(kTests / "cases" / (name + ".json")); }

Json machine_of(const Json& test) {
  Json machine = read_json(kTests / "machines" / test.at("base").get<std::string>() / "snapshot.json");
  if (test.contains("patch")) machine.merge_patch(test["patch"]);
  if (test.contains("at"))
    for (const auto& [pointer, value] : test["at"].items()) machine[Json::json_pointer(pointer)] = value;
  return machine;
}

Report diagnosed(const Json& test) {
  const auto snapshot = snapshot_from_json(machine_of(test).dump());
  if (!snapshot) throw std::runtime_error(snapshot.error().message);
  Report report = diagnose(*snapshot);
  fold(report);
  return report;
}

}  // namespace scankit
