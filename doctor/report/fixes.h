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
// The same, and who has to do it where this user cannot.
std::string fix_sentence(const Fix& fix, const Snapshot& snapshot);
// The command line that does it; empty where there is none.
std::string fix_command(const Fix& fix, const Snapshot& snapshot);
// The one command that repairs the root cause here, as this user, in a fresh shell: "scankit fix --python P"
// where that can do it (--module where it is not the usual one that is broken), else a line for the shell.
// Nothing where no command can: then the finding says who has to do what.
std::optional<std::string> repair_command(const Report& report);

}  // namespace scankit
