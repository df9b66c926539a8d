// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "doctor/model/finding.h"

namespace scankit {

// Gathers the findings of all outcomes, puts each symptom
// under its cause, the root first, and decides the verdict.
void fold(Report& report);

// The cause to act on first; nullptr where there is no error.
const Finding* root(const Report& report);

struct Tally {
  std::size_t errors = 0, warnings = 0, notes = 0;
  std::size_t passed = 0, not_applicable = 0, unknown = 0, crashed = 0;
};
Tally tally(const Report& report);

}  // namespace scankit
