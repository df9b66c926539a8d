// SPDX-License-Identifier: Apache-2.0
// The steps of a plan (plan.h): packages.cc turns a change of packages into commands of the user's installer,
// plan_steps.cc turns a finding or a wish into a step. plan.cc decides which ones are made.
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

// What a plan is made from.
struct PlanInput {
  const Host& host;
  const Report& report;
  const PlanRequest& request;
};

// The file name of a module of that flavor. The torch flavor has the first suffix of this Python, which names
// its own ABI and no other.
std::string module_file_of(const Snapshot& snapshot, const std::string& module, Flavor flavor);
// A module of ours under its file name of the requested flavor.
InstallBundled bundled(const PlanInput& input, const std::string& module);
// Whether import takes this module of ours. The distribution's record decides, since another build may have
// the same file name.
bool is_taken(const Snapshot& snapshot, const InstallBundled& wanted);

// Takes the first fix that scankit can make. If it can make none, the fixes become advice.
void repair_finding(const PlanInput& input, const Finding& finding, FixPlan& plan);
// What --package named. The Error says which one cannot be installed, and why.
Result<void> add_wanted_packages(const PlanInput& input, FixPlan& plan);

}  // namespace scankit
