// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include "doctor/model/finding.h"

namespace scankit {

// The name of the fix in the JSON: "install_module", "remove_shadow", ...
std::string_view fix_kind(const Fix& fix);
// What the fix would do, in one line.
std::string fix_sentence(const Fix& fix);
// The same, with who has to do it if this user cannot.
std::string fix_sentence(const Fix& fix, const Snapshot& snapshot);
// The command line that carries out the fix; "" if there is none, and for an unpacked root, which no
// command of this machine would change.
std::string fix_command(const Fix& fix, const Snapshot& snapshot);
// The one command that repairs the root cause here, as this user, in a fresh shell: "scankit fix --python
// P" if that can do it (with --module if the module is not the usual one), else a line for the shell.
// Nothing if no command can; the finding then says who has to do what.
std::optional<std::string> repair_command(const Report& report);

}  // namespace scankit
