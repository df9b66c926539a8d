// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "doctor/model/finding.h"

// Commands of the user's own installer: it knows their index, mirror and credentials, and its records stay
// true.
namespace scankit {

std::string python_path(const Snapshot& snapshot);  // as the user named it, else the resolved file
// pip where the environment has it, uv where it has none, conda for what conda installed.
std::string install_command(const InstallPackages& fix, const Snapshot& snapshot);
std::string rebuild_command(const RebuildPackage& fix, const Snapshot& snapshot);

}  // namespace scankit
