// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/model/failure.h"
#include "doctor/model/finding.h"
#include "doctor/report/document.h"

// What doctor, env check and ci run show: their answer is a Report.
namespace scankit::report {

// `exit_status`: with which this run of scankit ends, as far as the findings decide.
Document doctor_document(const Report& report, int exit_status);
// The parts of it for CI servers and collectors. A suite holds the checks of one family; one more holds the extensions, if they
// were audited, so that a dashboard shows a file that failed yesterday and loads today.
std::vector<Suite> doctor_suites(const Report& report);
std::vector<Metric> doctor_metrics(const Report& report, int exit_status);

// `report` must outlive the views.
Views doctor_views(const Report& report, int exit_status);

inline constexpr const char* kDoctorSchema = "urn:scankit:doctor:1";    // report/schema/doctor-1.json
inline constexpr const char* kDriftSchema = "urn:scankit:env-check:1";  // report/schema/env-check-1.json
inline constexpr const char* kGateSchema = "urn:scankit:ci-run:1";      // report/schema/ci-run-1.json

// The answer of `scankit doctor --json`, `scankit env check --json` or `scankit ci run --json`, by what
// the report was asked. Same report, same bytes.
std::string doctor_json(const Report& report);

// A JSON string, or null for a text that is empty or missing.
nlohmann::ordered_json or_null(const std::string& text);
nlohmann::ordered_json or_null(const std::optional<std::string>& text);

// Reads what doctor_json() of another scankit has written, for a gate or a fleet that merges answers. The
// caller says which schema it must have. Errc::Malformed if the text is incomplete or is not such an
// answer. Errc::Unsupported for a cause that this version does not know because a newer one wrote it: it
// must not vanish.
Result<std::vector<Outcome>> outcomes_from_json(std::string_view text, std::string_view schema);

// The command of `scankit run` in a report.

// "command" of the JSON report.
nlohmann::ordered_json command_json(const RanCommand& command);

// What people read of it, in pairs of item and value.
std::vector<std::pair<std::string, std::string>> command_rows(const RanCommand& command);

}  // namespace scankit::report
