// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fstream>
#include <iterator>
#include <string>

#include "doctor/checks/check.h"
#include "doctor/checks/recorded_cases.h"
#include "doctor/model/snapshot.h"

// For the tests of this folder: reports of a recorded machine that a case of doctor/tests/cases changed.
namespace scankit::report {

inline const std::string kTests = SCANKIT_SOURCE_DIR "/doctor/tests/";

inline std::string read(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline Report report_of(Snapshot snapshot) {
  Report report = checks::diagnose(std::move(snapshot));
  return report;
}

inline Snapshot snapshot_of(const std::string& case_name) {
  return *snapshot_from_json(checks::machine_of(checks::case_file(case_name)).dump());
}

inline Report report_of(const std::string& case_name) { return report_of(snapshot_of(case_name)); }

}  // namespace scankit::report
