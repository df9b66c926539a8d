// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/model/finding.h"

namespace scankit {

inline constexpr const char* kDoctorSchema = "urn:scankit:doctor:1";    // report/schema/doctor-1.json
inline constexpr const char* kDriftSchema = "urn:scankit:env-check:1";  // report/schema/env-check-1.json
inline constexpr const char* kGateSchema = "urn:scankit:ci-run:1";      // report/schema/ci-run-1.json

// The answer of `scankit doctor --json`, or of `scankit env check --json`. Same report,
// same bytes.
std::string doctor_json(const Report& report);

// Texts in such an answer: null where there is none.
nlohmann::ordered_json or_null(const std::string& text);
nlohmann::ordered_json or_null(const std::optional<std::string>& text);

// What doctor_json() wrote, as outcomes again: of a scankit that ran elsewhere, or as a child. Which schema
// it must be of is the caller's to say. Errc::Malformed where the text is not whole, or no such answer. A
// cause that this scankit does not know (a newer one wrote it) is Errc::Unsupported: it must not vanish.
Result<std::vector<Outcome>> outcomes_from_json(std::string_view text, std::string_view schema);

}  // namespace scankit
