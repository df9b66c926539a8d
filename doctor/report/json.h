// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "doctor/model/finding.h"

namespace scankit {

inline constexpr const char* kDoctorSchema = "urn:scankit:doctor:1";  // report/schema/doctor-1.json

// The answer of `scankit doctor --json`. `report` is folded. Same report, same bytes.
std::string doctor_json(const Report& report);

}  // namespace scankit
