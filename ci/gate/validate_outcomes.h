// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/model/finding.h"

namespace scankit {

// The answer of `scankit validate --json` as questions and findings: one for each device, one for the
// comparison of speed, one for what could not be run.
Result<std::vector<Outcome>> validate_outcomes(std::string_view json);

}  // namespace scankit
