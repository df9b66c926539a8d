// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/knowledge/faults.h"

namespace scankit {

// The causes whose texts hold the words of `query`, the best first: those with all words before those with
// some, then by where a word is found (slug, title, error lines, explanation, repair).
std::vector<const FaultClass*> search_causes(const std::string& query);

// "did you mean X?" of a mistyped slug; where none is near, how to list them all.
std::string cause_hint(const std::string& wanted);

}  // namespace scankit
