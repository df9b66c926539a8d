// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>

#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/model/snapshot_variables.h"
#include "doctor/report/escape.h"
#include "doctor/report/fixes.h"

namespace scankit::report {
namespace {

// The name in a requirement: "torch" of "torch==2.11.0". By PEP 508 a name consists of letters, digits,
// ".", "_" and "-".
std::string requirement_name(const std::string& requirement) {
  return requirement.substr(0, requirement.find_first_not_of("abcdefghijklmnopqrstuvwxyz"
                                                             "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"));
}

// The requirement as conda writes it. Its packages of torch and some others have another name than on the
// index, and versions follow a single "=".
std::string conda_requirement(const std::string& requirement) {
  const std::string name = requirement_name(requirement);
  std::string rest = requirement.substr(name.size());
  if (rest.starts_with("==")) rest.erase(0, 1);  // conda writes one "="
  return (name == "torch" ? "pytorch" : name) + rest;
}

// Whether conda has installed everything that the fix is about. pip would then leave conda's
// records wrong.
bool all_of_conda(const std::vector<std::string>& requirements, const Snapshot& snapshot) {
  return snapshot.python.value.kind == "conda" &&
         std::ranges::all_of(requirements, [&](const std::string& requirement) {
           const Distribution* known =
               find_distribution(snapshot.distributions.value, requirement_name(requirement));
           return known != nullptr && !known->conda_channel.empty();
         });
}

// "" if no conda program was found. A stored snapshot may be older than the fact about programs; its own
// name for the program is then the best guess.
std::string conda_program(const Snapshot& snapshot) {
  const Installers here = installers_of(snapshot);
  if (!here.known) return "conda";
  return here.conda.empty() ? "" : shell_quoted(here.conda);
}

std::string conda_prefix(const Snapshot& snapshot) {
  return " --prefix " + shell_quoted(snapshot.python.value.prefix);
}

std::string conda_command(const InstallPackages& fix, const Snapshot& snapshot) {
  const std::string program = conda_program(snapshot);
  if (program.empty()) return "";
  std::string command = program + " install" + conda_prefix(snapshot);
  if (fix.reinstall) command += " --force-reinstall";
  for (const std::string& requirement : fix.requirements)
    command += " " + shell_quoted(conda_requirement(requirement));
  return command;
}

// The beginnings of an install and of an uninstall command, and whether they are uv's. uv has its own options
// for reinstalling.
struct Installer {
  std::string words;
  bool uv = false;
  std::string uninstall;    // "": not possible here
  std::string before = {};  // the beginning of the whole line: where it is run
  bool exists() const { return !words.empty(); }
};

Installer by_pip(const std::string& pip) { return {pip + " install", false, pip + " uninstall -y"}; }
Installer by_uv(const std::string& path) {
  return {"uv pip install --python " + path, true, "uv pip uninstall --python " + path};
}

// Whether `pip install --user` works here: it is refused in a virtual environment and by a Python that
// the system's package manager owns (PEP 668).
bool user_site_serves(const Python& python) {
  return python.prefix == python.base_prefix && python.user_site_enabled && !python.externally_managed;
}

// `python -m pip` where the current directory does not hide pip.
Installer out_of_the_way(const Installers& here, Installer by) {
  by.before = pip_folder(here);
  return by;
}

// The installer that works for this environment as this user. Empty: none does, and
// who_can_install() says why.
Installer installer(const Snapshot& snapshot) {
  const Python& python = snapshot.python.value;
  const Installers here = installers_of(snapshot);
  const std::string path = shell_quoted(python_path(snapshot));
  // Facts from before scankit looked for installers, or from an unpacked root: what the
  // environment itself has.
  if (!here.known) return python.has_pip ? by_pip(path + " -m pip") : by_uv(path);
  if (python.externally_managed) return {};
  // This user cannot write to the environment; only the user's own site-packages is left.
  if (!here.owner.empty())
    return python.has_pip && user_site_serves(python)
               ? out_of_the_way(here, {path + " -m pip install --user"})
               : Installer{};
  const std::string prefix = pip_prefix(here, python);
  if (python.has_pip) return out_of_the_way(here, by_pip(prefix + path + " -m pip"));
  if (!here.uv.empty()) return by_uv(path);
  // pip 22.3 and newer can install into another environment with --python.
  if (!here.base_pip.empty())
    return out_of_the_way(here, by_pip(prefix + shell_quoted(here.base_pip) + " -m pip --python " + path));
  return {};
}

// The file, directory or URL from which the distribution was installed; "" if it came from an index
// or is editable.
std::string source_of(const std::string& name, const Snapshot& snapshot) {
  const Distribution* known = find_distribution(snapshot.distributions.value, name);
  return known == nullptr || known->editable ? "" : known->project;
}

// What to ask the installer for: a name and release, or the place from which the distribution came.
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

// The distribution, if any, for which the fix wants another release although it was installed from a file
// or directory of the user. That place has the installed release, and an index may have anything under
// the same name.
const Distribution* tied_to_its_source(const InstallPackages& fix, const Snapshot& snapshot) {
  if (fix.reinstall) return nullptr;
  for (const std::string& requirement : fix.requirements)
    if (const std::string name = requirement_name(requirement); !source_of(name, snapshot).empty())
      return find_distribution(snapshot.distributions.value, name);
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

// A damaged distribution needs more than its name: the installer's records say that it is already there.
std::string install_command(const InstallPackages& fix, const Snapshot& snapshot) {
  if (all_of_conda(fix.requirements, snapshot)) return conda_command(fix, snapshot);
  const Installer by = installer(snapshot);
  if (!by.exists() || tied_to_its_source(fix, snapshot) != nullptr) return "";
  const std::string wanted = quoted(fix, snapshot);
  if (!fix.reinstall) return by.before + by.words + wanted;
  // uv links the files of an environment from its cache, so a file that was damaged in place is damaged
  // in the cache too, and would come back.
  if (by.uv) return "uv cache clean" + names(fix) + " && " + by.words + " --reinstall" + wanted;
  // --force-reinstall alone would reinstall all dependencies, which are gigabytes for torch. The second
  // command installs those that are missing.
  return by.before + by.words + " --force-reinstall --no-deps" + wanted + " && " + by.words + wanted;
}

// --no-build-isolation, because an isolated build would use a torch of its own, unless its maintainer declares that
// the build needs none. --no-deps, because torch would be replaced otherwise. Caches are switched off, because they would return the same file.
std::string rebuild_command(const RebuildPackage& fix, const Snapshot& snapshot) {
  const Installer by = installer(snapshot);
  const std::string source = source_of(fix.distribution, snapshot);
  if (!by.exists() || !who_can_rebuild(fix, snapshot).empty()) return "";
  std::string command = by.before;
  for (const auto& [name, value] : fix.environment) command += name + "=" + shell_quoted(value) + " ";
  command += by.words + (fix.isolated ? " --no-deps" : " --no-build-isolation --no-deps");
  if (!fix.project.empty()) return command + " --editable " + shell_quoted(fix.project);
  const std::string name = shell_quoted(fix.distribution);
  // Without this, pip would take the wheel of the index if there is one.
  if (source.empty()) command += " --no-binary " + name;
  command += by.uv ? " --no-cache --reinstall-package " + name : " --no-cache-dir --force-reinstall";
  return command + " " + shell_quoted(source.empty() ? fix.distribution + "==" + fix.version : source);
}

// With dependencies: the project may never have been installed here.
std::string build_command(const BuildProject& fix, const Snapshot& snapshot) {
  const Installer by = installer(snapshot);
  return by.exists() ? by.before + by.words + " --no-build-isolation " + shell_quoted(fix.folder) : "";
}

// --no-deps: the dependencies are there, and reinstalling them may be gigabytes.
std::string keep_command(const KeepOnly& fix, const Snapshot& snapshot) {
  if (all_of_conda(fix.others, snapshot) && all_of_conda({fix.requirement}, snapshot)) {
    const std::string program = conda_program(snapshot);
    if (program.empty()) return "";
    // --force removes them alone, not what depends on them.
    return program + " remove" + conda_prefix(snapshot) + " --force " + shell_line(fix.others) + " && " +
           conda_command({.requirements = {fix.requirement}, .reinstall = true}, snapshot);
  }
  const Installer by = installer(snapshot);
  if (by.uninstall.empty()) return "";
  return by.before + by.uninstall + " " + shell_line(fix.others) + " && " + by.words +
         (by.uv ? " --reinstall" : " --force-reinstall") + " --no-deps " +
         shell_quoted(asked_for(fix.requirement, snapshot));
}

// The reasons in the order in which installer() gives up.
std::string who_can_install(const Snapshot& snapshot) {
  const Python& python = snapshot.python.value;
  const Installers here = installers_of(snapshot);
  if (!here.known || installer(snapshot).exists()) return "";
  if (python.externally_managed)
    return say(
        "the system's package manager owns this Python; create an environment of your own: {} -m venv .venv",
        shell_quoted(python_path(snapshot)));
  if (!here.owner.empty())
    return say("{} must do this, because you cannot write to {}", here.owner, here.site);
  if (here.ensurepip.empty())
    return say(
        "pip, uv and ensurepip were not found: put uv on PATH, or ask root to install ensurepip (Debian and "
        "Ubuntu: apt install python3-venv)");
  return say("neither pip nor uv was found; install pip with: {} -m ensurepip",
             shell_quoted(python_path(snapshot)));
}

std::string who_can_install(const InstallPackages& fix, const Snapshot& snapshot) {
  if (const Distribution* tied = tied_to_its_source(fix, snapshot))
    return say("{} was installed from {}; install the other release from the same source", tied->name,
               tied->project);
  return who_can_install(snapshot);
}

// `pip install --user` puts a package beside the owner's; only the owner can uninstall theirs.
std::string who_can_keep(const KeepOnly& fix, const Snapshot& snapshot) {
  const Installers here = installers_of(snapshot);
  if (!keep_command(fix, snapshot).empty() || here.owner.empty()) return who_can_install(snapshot);
  return say("{} must do this, because you cannot write to {}", here.owner, here.site);
}

// A wheel contains no sources to build from.
std::string who_can_rebuild(const RebuildPackage& fix, const Snapshot& snapshot) {
  const std::string source = source_of(fix.distribution, snapshot);
  if (!source.ends_with(".whl")) return "";
  return say("{} was installed from the wheel {}, which must be rebuilt for the installed torch",
             fix.distribution, source);
}

}  // namespace scankit::report
