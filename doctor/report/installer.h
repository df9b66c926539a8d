// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "doctor/model/finding.h"

// Commands of the user's own installer: it knows their index, mirror and credentials, and its records stay
// true. Each is "" where none would work: no installer on this PATH, no permission, nothing to install from.
namespace scankit {

std::string python_path(const Snapshot& snapshot);  // as the user named it, else the resolved file
// pip where the environment has it, uv or the base Python's
// pip where it has none, conda for what conda installed.
std::string install_command(const InstallPackages& fix, const Snapshot& snapshot);
std::string rebuild_command(const RebuildPackage& fix, const Snapshot& snapshot);
// Who has to do what, where there is no such command; "" where there is.
std::string who_can_install(const Snapshot& snapshot);
std::string who_can_install(const InstallPackages& fix, const Snapshot& snapshot);
std::string who_can_rebuild(const RebuildPackage& fix, const Snapshot& snapshot);

}  // namespace scankit
