// SPDX-License-Identifier: Apache-2.0
#include "doctor/report/installer.h"

#include <algorithm>
#include <cctype>

#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/model/installers.h"
#include "doctor/report/escape.h"

namespace scankit {
namespace {

// "torch==2.11.0" and "torch" name torch (PEP 508: a name is letters, digits, ".", "_" and "-").
std::string requirement_name(const std::string& requirement) {
  return requirement.substr(0, requirement.find_first_not_of("abcdefghijklmnopqrstuvwxyz"
                                                             "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"));
}

const Distribution* installed(const Snapshot& snapshot, const std::string& name) {
  const auto& all = snapshot.distributions.value;
  const auto found = std::ranges::find_if(
      all, [&](const Distribution& known) { return normalized_name(known.name) == normalized_name(name); });
  return found == all.end() ? nullptr : &*found;
}

// conda's packages of these have another name than the index's distributions.
std::string conda_requirement(const std::string& requirement) {
  const std::string name = requirement_name(requirement);
  std::string rest = requirement.substr(name.size());
  if (rest.starts_with("==")) rest.erase(0, 1);  // conda writes one "="
  return (name == "torch" ? "pytorch" : name) + rest;
}

bool all_of_conda(const InstallPackages& fix, const Snapshot& snapshot) {
  return snapshot.python.value.kind == "conda" &&
         std::ranges::all_of(fix.requirements, [&](const std::string& requirement) {
           const Distribution* known = installed(snapshot, requirement_name(requirement));
           return known != nullptr && !known->conda_channel.empty();
         });
}

// Facts of a stored snapshot may be older than this question: then conda's own name is right.
std::string conda_command(const InstallPackages& fix, const Snapshot& snapshot) {
  const Installers here = installers_of(snapshot);
  const std::string program = here.known ? here.conda : "conda";
  if (program.empty()) return "";
  std::string command = program + " install --prefix " + shell_quoted(snapshot.python.value.prefix);
  if (fix.reinstall) command += " --force-reinstall";
  for (const std::string& requirement : fix.requirements)
    command += " " + shell_quoted(conda_requirement(requirement));
  return command;
}

// The installer's own words before its options, and which of the two it is.
struct Installer {
  std::string words;
  bool uv = false;
  bool exists() const { return !words.empty(); }
};

// --user is refused in a venv, and by a Python that the system manages (PEP 668).
bool user_site_serves(const Python& python) {
  return python.prefix == python.base_prefix && python.user_site_enabled && !python.externally_managed;
}

Installer installer(const Snapshot& snapshot) {
  const Python& python = snapshot.python.value;
  const Installers here = installers_of(snapshot);
  const std::string path = shell_quoted(python_path(snapshot));
  if (!here.known)
    return python.has_pip ? Installer{path + " -m pip install"}
                          : Installer{"uv pip install --python " + path, true};
  if (python.externally_managed) return {};
  if (!here.owner.empty())
    return python.has_pip && user_site_serves(python) ? Installer{path + " -m pip install --user"}
                                                      : Installer{};
  const std::string prefix = pip_prefix(here, python);
  if (python.has_pip) return {prefix + path + " -m pip install"};
  if (!here.uv.empty()) return {"uv pip install --python " + path, true};
  if (!here.base_pip.empty())
    return {prefix + shell_quoted(here.base_pip) + " -m pip --python " + path + " install"};
  return {};
}

// What it was installed from where that was no index; "" where it was.
std::string source_of(const std::string& name, const Snapshot& snapshot) {
  const Distribution* known = installed(snapshot, name);
  return known == nullptr || known->editable ? "" : known->project;
}

// What is asked for: a name and release, or where it came from.
std::string asked_for(const std::string& requirement, const Snapshot& snapshot) {
  const std::string source = source_of(requirement_name(requirement), snapshot);
  return source.empty() ? requirement : source;
}

std::string quoted(const InstallPackages& fix, const Snapshot& snapshot) {
  std::string words;
  for (const std::string& requirement : fix.requirements)
    words += " " + shell_quoted(asked_for(requirement, snapshot));
  return words;
}

// Another release is asked of a distribution that came from a folder or file of the user's: what lies there
// is the release that is installed, and an index may hold anything under that name.
const Distribution* tied_to_its_source(const InstallPackages& fix, const Snapshot& snapshot) {
  if (fix.reinstall) return nullptr;
  for (const std::string& requirement : fix.requirements)
    if (const std::string name = requirement_name(requirement); !source_of(name, snapshot).empty())
      return installed(snapshot, name);
  return nullptr;
}

std::string names(const InstallPackages& fix) {
  std::string text;
  for (const std::string& requirement : fix.requirements)
    text += " " + shell_quoted(requirement_name(requirement));
  return text;
}

}  // namespace

std::string python_path(const Snapshot& snapshot) {
  const Python& python = snapshot.python.value;
  return python.requested.empty() ? python.executable : python.requested;
}

std::string install_command(const InstallPackages& fix, const Snapshot& snapshot) {
  if (all_of_conda(fix, snapshot)) return conda_command(fix, snapshot);
  const Installer by = installer(snapshot);
  if (!by.exists() || tied_to_its_source(fix, snapshot) != nullptr) return "";
  const std::string wanted = quoted(fix, snapshot);
  if (!fix.reinstall) return by.words + wanted;
  // uv links the files of an environment from its cache, so that what was damaged in place is damaged there
  // too, and would come back.
  if (by.uv) return "uv cache clean" + names(fix) + " && " + by.words + " --reinstall" + wanted;
  // --force-reinstall alone would bring all that they depend on again, for torch gigabytes. The second line
  // brings what is missing of it.
  return by.words + " --force-reinstall --no-deps" + wanted + " && " + by.words + wanted;
}

// --no-build-isolation: an isolated build would fetch a torch of its own. --no-deps: or torch is replaced.
// Caches would give the same file back.
std::string rebuild_command(const RebuildPackage& fix, const Snapshot& snapshot) {
  const Installer by = installer(snapshot);
  const std::string source = source_of(fix.distribution, snapshot);
  if (!by.exists() || !who_can_rebuild(fix, snapshot).empty()) return "";
  std::string command;
  for (const auto& [name, value] : fix.environment) command += name + "=" + shell_quoted(value) + " ";
  command += by.words + " --no-build-isolation --no-deps";
  if (!fix.project.empty()) return command + " --editable " + shell_quoted(fix.project);
  const std::string name = shell_quoted(fix.distribution);
  if (source.empty()) command += " --no-binary " + name;
  command += by.uv ? " --no-cache --reinstall-package " + name : " --no-cache-dir --force-reinstall";
  return command + " " + shell_quoted(source.empty() ? fix.distribution + "==" + fix.version : source);
}

std::string who_can_install(const Snapshot& snapshot) {
  const Python& python = snapshot.python.value;
  const Installers here = installers_of(snapshot);
  if (!here.known || installer(snapshot).exists()) return "";
  if (python.externally_managed)
    return say(
        "the system's package manager owns this Python; make an environment of your own: {} -m venv .venv",
        shell_quoted(python_path(snapshot)));
  if (!here.owner.empty()) return say("{} has to do it, since you cannot write to {}", here.owner, here.site);
  if (here.ensurepip.empty())
    return say(
        "no pip, no uv and no ensurepip found: put uv on PATH, or have root install ensurepip (Debian and "
        "Ubuntu: apt install python3-venv)");
  return say("no pip and no uv found; bring pip with: {} -m ensurepip", shell_quoted(python_path(snapshot)));
}

std::string who_can_install(const InstallPackages& fix, const Snapshot& snapshot) {
  if (const Distribution* tied = tied_to_its_source(fix, snapshot))
    return say("{} was installed from {}; install the other release from where you have it", tied->name,
               tied->project);
  return who_can_install(snapshot);
}

std::string who_can_rebuild(const RebuildPackage& fix, const Snapshot& snapshot) {
  const std::string source = source_of(fix.distribution, snapshot);
  if (!source.ends_with(".whl")) return "";
  return say("{} was installed from the wheel {}; whoever built it has to build it for the installed torch",
             fix.distribution, source);
}

}  // namespace scankit
