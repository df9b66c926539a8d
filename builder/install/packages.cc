// SPDX-License-Identifier: Apache-2.0
#include "builder/install/packages.h"

#include <algorithm>
#include <array>

#include "doctor/base/say.h"

namespace scankit {
namespace {

// The variables of setup.py: mamba-ssm since 1.0.1, causal-conv1d since 1.0.0. SKIP leaves the CUDA part out;
// FORCE keeps it from asking its project's releases for a built wheel, which has one.
constexpr std::array kModelPackages = {
    ModelPackage{"mamba-ssm", "selective_scan_cuda", "from mamba_ssm import Mamba", "MAMBA_SKIP_CUDA_BUILD",
                 "MAMBA_FORCE_BUILD"},
    ModelPackage{"causal-conv1d", "causal_conv1d_cuda", "from causal_conv1d import causal_conv1d_fn",
                 "CAUSAL_CONV1D_SKIP_CUDA_BUILD", "CAUSAL_CONV1D_FORCE_BUILD"}};

Error nobody_can(const Installer& installer) { return {Errc::Unsupported, installer.why, installer.instead}; }

// What a build against the installed torch needs beside it (their pyproject.toml's build-system table).
std::vector<std::string> missing_build_tools(const Snapshot& snapshot) {
  std::vector<std::string> missing;
  for (const char* tool : {"setuptools", "wheel", "packaging"})
    if (installed_version(snapshot, tool).empty()) missing.emplace_back(tool);
  return missing;
}

// An installer that exchanges torch on behalf of another package breaks every compiled extension.
void hold_torch(const Snapshot& snapshot, PackageChange& change) {
  const std::string version = installed_version(snapshot, "torch");
  if (version.empty() || version == "?") return;
  for (const std::string& requirement : change.requirements)
    if (normalised_name(requirement) == "torch") return;
  change.held = {"torch==" + version};
}

void put_before(std::vector<InstallerCommand> first, std::vector<InstallerCommand>& commands) {
  commands.insert(commands.begin(), first.begin(), first.end());
}

}  // namespace

const ModelPackage* model_package(const std::string& requirement) {
  const auto found = std::ranges::find(kModelPackages, normalised_name(requirement),
                                       [](const ModelPackage& one) { return std::string(one.distribution); });
  return found == kModelPackages.end() ? nullptr : &*found;
}

std::string installed_version(const Snapshot& snapshot, const std::string& name) {
  const std::string wanted = normalised_name(name);
  for (const Distribution& known : snapshot.distributions.value)
    if (normalised_name(known.name) == wanted) return known.version.empty() ? "?" : known.version;
  return "";
}

Result<ChangePackages> change_packages(const Host& host, const Snapshot& snapshot, PackageChange change) {
  ChangePackages made;
  made.installer = installer_of(host, snapshot, normalised_name(change.requirements.front()));
  if (made.installer.kind == Installer::Kind::None) return nobody_can(made.installer);
  std::vector<std::string> environment;
  for (const std::string& requirement : change.requirements) {
    const ModelPackage* model = model_package(requirement);
    if (model == nullptr) continue;
    change.isolated_build = false;
    change.from_source.emplace_back(model->distribution);
    made.statements.emplace_back(model->statement);
    environment.push_back(std::string(model->skip) + "=TRUE");
    environment.push_back(std::string(model->force) + "=TRUE");
  }
  hold_torch(snapshot, change);
  made.commands = change_commands(made.installer, change);
  if (made.commands.empty())
    return Error{Errc::Unsupported, say("{} cannot do that", name_of(made.installer.kind)),
                 say("use a venv, in which pip can")};
  for (InstallerCommand& command : made.commands)
    command.environment.insert(command.environment.end(), environment.begin(), environment.end());
  if (!change.isolated_build)
    if (const auto tools = missing_build_tools(snapshot); !tools.empty())
      put_before(change_commands(made.installer, {.requirements = tools}), made.commands);
  for (const std::string& requirement : change.requirements) {
    const std::string name = normalised_name(requirement);
    made.before.emplace_back(name, installed_version(snapshot, name));
  }
  made.change = std::move(change);
  return made;
}

// What is installed again is installed alone. Then comes what it needs and what is not there at all: a torch
// without its CUDA wheels is as broken as one without its own files.
Result<ChangePackages> change_for(const Host& host, const Snapshot& snapshot, const InstallPackages& fix) {
  SCANKIT_TRY(
      ChangePackages made,
      change_packages(host, snapshot, {.requirements = fix.requirements, .reinstall = fix.reinstall}));
  if (!fix.reinstall || made.installer.kind == Installer::Kind::Conda) return made;
  for (InstallerCommand& more :
       change_commands(made.installer, {.requirements = fix.requirements, .held = made.change.held}))
    made.commands.push_back(std::move(more));
  return made;
}

Result<ChangePackages> change_for(const Host& host, const Snapshot& snapshot, const RebuildPackage& fix) {
  if (!fix.project.empty())
    return Error{Errc::Unsupported, say("{} is built in its own folder, {}", fix.distribution, fix.project),
                 ""};
  PackageChange change;
  change.requirements = {fix.distribution + "==" + fix.version};
  change.reinstall = true;
  change.dependencies = false;
  change.isolated_build = false;
  change.from_source = {fix.distribution};
  SCANKIT_TRY(ChangePackages made, change_packages(host, snapshot, std::move(change)));
  for (InstallerCommand& command : made.commands)
    for (const auto& [name, value] : fix.environment) command.environment.push_back(name + "=" + value);
  return made;
}

}  // namespace scankit
