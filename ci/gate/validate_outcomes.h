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

// That a module does not import is one fault: where doctor names its cause, validate's word of it is taken
// out, so that what the policy says of the cause decides.
void leave_import_to_doctor(const std::vector<Outcome>& doctor, std::vector<Outcome>& validate);

}  // namespace scankit
