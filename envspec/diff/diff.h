// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/model/redact.h"
#include "envspec/diff/operands.h"

namespace scankit {

// One row of the output. `field` is a name of Side::values.
struct Difference {
  std::string field, left, right;  // "" where that side has none
  std::string why_unknown;         // it could not be compared
};
// Fields by name. A spec says nothing of what it does not name, and takes what its ranges take. Packages that
// only one side has differ, and so do compiled files where both sides tell of all of theirs; of extensions
// those are compared that both sides tell of.
std::vector<Difference> differences(const Side& left, const Side& right);

// Removes names of people, machines and directories from names, values and reasons.
void redact(const Owner& owner, Side& left, Side& right, std::vector<Difference>& all);

std::string diff_text(const Side& left, const Side& right, const std::vector<Difference>& all);
std::string diff_json(const Side& left, const Side& right, const std::vector<Difference>& all);

}  // namespace scankit
