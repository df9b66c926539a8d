// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "doctor/model/finding.h"

// Commands of the user's own installer, so that their index, mirror and credentials apply and the
// installer's records stay true. A command is "" if none would work: no installer on this PATH, no
// permission, nothing to install from.
namespace scankit {

// The interpreter as the user named it, else the resolved file.
std::string python_path(const Snapshot& snapshot);  // as the user named it, else the resolved file
// Uses pip if the environment has it, uv or the base Python's pip if it does not, and conda for what
// conda has installed.
std::string install_command(const InstallPackages& fix, const Snapshot& snapshot);
std::string rebuild_command(const RebuildPackage& fix, const Snapshot& snapshot);
// Who has to do what if there is no such command, as a sentence; "" if there is one.
std::string who_can_install(const Snapshot& snapshot);
std::string who_can_install(const InstallPackages& fix, const Snapshot& snapshot);
std::string who_can_rebuild(const RebuildPackage& fix, const Snapshot& snapshot);

}  // namespace scankit
