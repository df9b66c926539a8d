// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "doctor/checks/runner.h"
#include "doctor/model/snapshot_json.h"
#include "doctor/report/fold.h"

// For the tests of this folder: reports of a recorded machine that a case of doctor/tests/cases changed.
namespace scankit {

inline const std::string kTests = SCANKIT_SOURCE_DIR "/doctor/tests/";

inline std::string read(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline Report report_of(Snapshot snapshot) {
  Report report = diagnose(std::move(snapshot));
  fold(report);
  return report;
}

inline Snapshot snapshot_of(const std::string& case_name) {
  using Json = nlohmann::json;
  Json machine = Json::parse(read(kTests + "machines/cpu_torch211/snapshot.json"));
  const Json test = Json::parse(read(kTests + "cases/" + case_name + ".json"));
  if (test.contains("at"))
    for (const auto& [pointer, value] : test["at"].items()) machine[Json::json_pointer(pointer)] = value;
  return *snapshot_from_json(machine.dump());
}

inline Report report_of(const std::string& case_name) { return report_of(snapshot_of(case_name)); }

}  // namespace scankit
