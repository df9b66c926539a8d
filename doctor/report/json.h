// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "doctor/model/finding.h"

namespace scankit {

inline constexpr const char* kDoctorSchema = "urn:scankit:doctor:1";    // report/schema/doctor-1.json
inline constexpr const char* kDriftSchema = "urn:scankit:env-check:1";  // report/schema/env-check-1.json
inline constexpr const char* kGateSchema = "urn:scankit:ci-run:1";      // report/schema/ci-run-1.json

// The answer of `scankit doctor --json`, or of `scankit env check --json`. `report` is folded. Same report,
// same bytes.
std::string doctor_json(const Report& report);

// Texts in such an answer: null where there is none.
nlohmann::ordered_json or_null(const std::string& text);
nlohmann::ordered_json or_null(const std::optional<std::string>& text);

}  // namespace scankit
