// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include "doctor/model/finding.h"

namespace scankit::report {

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

// Commands of the user's own installer, so that their index, mirror and credentials apply and the
// installer's records stay true. A command is "" if none would work: no installer on this PATH, no
// permission, nothing to install from.

// The interpreter as the user named it, else the resolved file.
std::string python_path(const Snapshot& snapshot);  // as the user named it, else the resolved file
// Uses pip if the environment has it, uv or the base Python's pip if it does not, and conda for what
// conda has installed.
std::string install_command(const InstallPackages& fix, const Snapshot& snapshot);
std::string rebuild_command(const RebuildPackage& fix, const Snapshot& snapshot);
std::string build_command(const BuildProject& fix, const Snapshot& snapshot);
std::string keep_command(const KeepOnly& fix, const Snapshot& snapshot);
// Who has to do what if there is no such command, as a sentence; "" if there is one.
std::string who_can_install(const Snapshot& snapshot);
std::string who_can_install(const InstallPackages& fix, const Snapshot& snapshot);
std::string who_can_keep(const KeepOnly& fix, const Snapshot& snapshot);
std::string who_can_rebuild(const RebuildPackage& fix, const Snapshot& snapshot);

}  // namespace scankit::report
