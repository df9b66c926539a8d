// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include "doctor/model/finding.h"

namespace scankit {

// "install_module", "remove_shadow", ...: the names in the JSON.
std::string_view fix_kind(const Fix& fix);
// What the user would do, in one line.
std::string fix_sentence(const Fix& fix);
// The command line that does it; empty where there is none.
std::string fix_command(const Fix& fix, const Snapshot& snapshot);
// "scankit fix --python P", where that command can repair an error of the report; --module where it is not
// the usual one that is broken.
std::optional<std::string> repair_command(const Report& report);

}  // namespace scankit
