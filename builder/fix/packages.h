// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "builder/fix/plan.h"

namespace scankit {

// A package whose CUDA part is a module of ours. Its Python part is installed without a CUDA build.
// `statement` must work afterwards.
struct ModelPackage {
  std::string_view distribution, module, statement;
  std::string_view skip, force;  // what their setup.py reads
};
// By the requirement's name; null for any other package.
const ModelPackage* model_package(const std::string& requirement);

// The change as commands of the user's own installer. Errc::Unsupported if nothing can change the
// environment; the hint says what the user can do instead.
Result<ChangePackages> change_packages(const Host& host, const Snapshot& snapshot, PackageChange change);
// The same for the fixes of a finding. `damaged`: the installed file is not the one that its distribution
// brought, so that the same wheel repairs it.
Result<ChangePackages> change_for(const Host& host, const Snapshot& snapshot, const InstallPackages& fix);
Result<ChangePackages> change_for(const Host& host, const Snapshot& snapshot, const RebuildPackage& fix,
                                  bool damaged);

// "?" if the distribution is installed and its version is not known.
std::string installed_version(const Snapshot& snapshot, const std::string& name);  // "" where it is not

}  // namespace scankit
