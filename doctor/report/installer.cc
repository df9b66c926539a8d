// SPDX-License-Identifier: Apache-2.0
#include "doctor/report/installer.h"

#include <algorithm>

#include "doctor/report/plain.h"

namespace scankit {
namespace {

// "torch==2.11.0" and "torch" name torch (PEP 508: a name is letters, digits, ".", "_" and "-").
std::string name_of(const std::string& requirement) {
  return requirement.substr(0, requirement.find_first_not_of("abcdefghijklmnopqrstuvwxyz"
                                                             "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"));
}

// conda's packages of these have another name than the index's distributions.
std::string conda_requirement(const std::string& requirement) {
  const std::string name = name_of(requirement);
  std::string rest = requirement.substr(name.size());
  if (rest.starts_with("==")) rest.erase(0, 1);  // conda writes one "="
  return (name == "torch" ? "pytorch" : name) + rest;
}

bool conda_installed(const Snapshot& snapshot, const std::string& name) {
  return std::ranges::any_of(snapshot.distributions.value, [&](const Distribution& known) {
    return known.name == name && !known.conda_channel.empty();
  });
}

std::string conda_command(const InstallPackages& fix, const Snapshot& snapshot) {
  std::string command = "conda install --prefix " + shell_quoted(snapshot.python.value.prefix);
  if (fix.reinstall) command += " --force-reinstall";
  for (const std::string& requirement : fix.requirements)
    command += " " + shell_quoted(conda_requirement(requirement));
  return command;
}

// What the user types before the installer's own options.
std::string installer(const Snapshot& snapshot) {
  const std::string python = shell_quoted(python_path(snapshot));
  return snapshot.python.value.has_pip ? python + " -m pip install" : "uv pip install --python " + python;
}

// " NAME NAME"
std::string names(const InstallPackages& fix) {
  std::string text;
  for (const std::string& requirement : fix.requirements) text += " " + shell_quoted(name_of(requirement));
  return text;
}

}  // namespace

std::string python_path(const Snapshot& snapshot) {
  const Python& python = snapshot.python.value;
  return python.requested.empty() ? python.executable : python.requested;
}

std::string install_command(const InstallPackages& fix, const Snapshot& snapshot) {
  if (std::ranges::all_of(fix.requirements,
                          [&](const auto& one) { return conda_installed(snapshot, name_of(one)); }) &&
      snapshot.python.value.kind == "conda")
    return conda_command(fix, snapshot);
  std::string command = installer(snapshot);
  if (fix.reinstall) command += snapshot.python.value.has_pip ? " --force-reinstall" : " --reinstall";
  // uv links the files of an environment from its cache, so that what was damaged in place is damaged there
  // too, and would come back.
  if (fix.reinstall && !snapshot.python.value.has_pip)
    command = "uv cache clean" + names(fix) + " && " + command;
  for (const std::string& requirement : fix.requirements) command += " " + shell_quoted(requirement);
  return command;
}

// --no-build-isolation: an isolated build would fetch a torch of its own. --no-deps: or torch is replaced.
// Caches would give the same file back.
std::string rebuild_command(const RebuildPackage& fix, const Snapshot& snapshot) {
  std::string command;
  for (const auto& [name, value] : fix.environment) command += name + "=" + shell_quoted(value) + " ";
  command += installer(snapshot) + " --no-build-isolation --no-deps";
  if (!fix.project.empty()) return command + " --editable " + shell_quoted(fix.project);
  const std::string name = shell_quoted(fix.distribution);
  command += " --no-binary " + name;
  command += snapshot.python.value.has_pip ? " --no-cache-dir --force-reinstall"
                                           : " --no-cache --reinstall-package " + name;
  return command + " " + shell_quoted(fix.distribution + "==" + fix.version);
}

}  // namespace scankit
