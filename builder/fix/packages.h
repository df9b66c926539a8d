// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "builder/fix/plan.h"

namespace scankit {

// The packages whose CUDA part is a module of ours: their Python part is installed without building it.
struct ModelPackage {
  std::string_view distribution, module, statement;
  std::string_view skip, force;  // what their setup.py reads
};
const ModelPackage* model_package(const std::string& requirement);

// The change as commands of the user's own installer. Errc::Unsupported where nothing can change the
// environment; its hint says what the user can do.
Result<ChangePackages> change_packages(const Host& host, const Snapshot& snapshot, PackageChange change);
// From the findings' fixes. `damaged`: the installed file is not what its distribution brought, so that the
// same wheel repairs it.
Result<ChangePackages> change_for(const Host& host, const Snapshot& snapshot, const InstallPackages& fix);
Result<ChangePackages> change_for(const Host& host, const Snapshot& snapshot, const RebuildPackage& fix,
                                  bool damaged);

std::string installed_version(const Snapshot& snapshot, const std::string& name);  // "" where it is not

}  // namespace scankit
