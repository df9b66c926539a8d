// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/model/finding.h"

namespace scankit {

// What doctor_json() wrote, as outcomes again: of a scankit that ran elsewhere, or as a child. Which schema
// it must be of is the caller's to say. Errc::Malformed where the text is not whole, or no such answer. A
// cause that this scankit does not know (a newer one wrote it) is Errc::Unsupported: it must not vanish.
Result<std::vector<Outcome>> outcomes_from_json(std::string_view text, std::string_view schema);

}  // namespace scankit
