// SPDX-License-Identifier: Apache-2.0
// The words of pip, uv and conda for each PackageChange. An option that an installer of some age does not
// know fails the whole command, so anything new here needs a look at the oldest release that must work.
#include <algorithm>

#include "builder/installer/installer.h"
#include "doctor/base/files.h"
#include "doctor/base/text.h"

namespace scankit::installer {
namespace {

using Words = std::vector<std::string>;

void add(Words& argv, const Words& words) { argv.insert(argv.end(), words.begin(), words.end()); }

bool is_file(const std::string& requirement) { return requirement.starts_with('/'); }

// "torch==2.11.0" in conda's words: "pytorch=2.11.0".
std::string conda_requirement(const std::string& requirement) {
  const std::string name = required_name(requirement);
  std::string rest = requirement.substr(std::min(requirement.find_first_of("=<>!~"), requirement.size()));
  if (rest.starts_with("==")) rest.erase(0, 1);
  return (name == "torch" ? "pytorch" : name) + rest;
}

// --no-input: a question could not be answered, since standard input is /dev/null (fix/run_installer.cc).
Words pip_words(const Installer& installer, const char* verb) {
  Words argv = installer.program;
  add(argv, {"--disable-pip-version-check", "--no-input", verb});
  return argv;
}

// The constraints that the command needs. A command that installs nothing but the named packages needs none.
Words held_by(const PackageChange& change) {
  return change.reinstall || !change.dependencies ? Words{} : change.held;
}

// What comes from a folder, a file or a repository has no wheel to be refused. Not merely needless: pip
// before 23.1 takes --no-binary for `setup.py install`, which forgets where the distribution came from.
Words without_wheels_of(const PackageChange& change) {
  Words names;
  for (const std::string& name : change.from_source)
    if (std::ranges::none_of(change.requirements, [&](const std::string& requirement) {
          return requirement.find(" @ ") != std::string::npos &&
                 required_name(requirement) == required_name(name);
        }))
      names.push_back(name);
  return names;
}

InstallerCommand pip_change(const Installer& installer, const PackageChange& change) {
  Words argv = pip_words(installer, "install");
  if (change.upgrade) argv.emplace_back("--upgrade");
  if (change.reinstall) argv.emplace_back("--force-reinstall");
  if (change.reinstall || !change.dependencies) argv.emplace_back("--no-deps");
  if (!change.isolated_build) argv.emplace_back("--no-build-isolation");
  for (const std::string& name : without_wheels_of(change)) add(argv, {"--no-binary", name});
  // pip keeps the wheels that it built, and would give the same one back.
  if (!change.from_source.empty()) argv.emplace_back("--no-cache-dir");
  add(argv, change.requirements);
  return {argv, installer.not_for_user ? Words{"PIP_USER=0"} : Words{}, folder_of(installer),
          held_by(change)};
}

// uv links the files of an environment from its cache: what was damaged in place is damaged there too, and
// would come back.
InstallerCommand uv_forget(const Installer& installer, const PackageChange& change) {
  Words argv = installer.program;
  add(argv, {"cache", "clean"});
  for (const std::string& requirement : change.requirements) argv.push_back(required_name(requirement));
  return {argv, {}, installer.project, {}};
}

// `uv pip` changes the environment alone; the next `uv sync` may undo that (kept_by_sync). A file has no name
// for --reinstall-package, so --reinstall is used for it.
InstallerCommand uv_pip_change(const Installer& installer, const PackageChange& change) {
  Words argv = installer.program;
  add(argv, {"pip", "install", "--python", installer.environment});
  if (change.upgrade) argv.emplace_back("--upgrade");
  if (change.reinstall || !change.dependencies) argv.emplace_back("--no-deps");
  if (change.reinstall)
    for (const std::string& requirement : change.requirements)
      if (!is_file(requirement)) add(argv, {"--reinstall-package", required_name(requirement)});
  if (change.reinstall && std::ranges::any_of(change.requirements, is_file)) argv.emplace_back("--reinstall");
  if (!change.isolated_build) argv.emplace_back("--no-build-isolation");
  for (const std::string& name : without_wheels_of(change)) add(argv, {"--no-binary", name});
  if (!change.from_source.empty()) argv.emplace_back("--no-cache");
  add(argv, change.requirements);
  return {argv, {}, installer.project, held_by(change)};
}

// Changes the project's own records (pyproject.toml, uv.lock), so that the next sync keeps the change. A new
// requirement takes `uv add`; what the lock names already is installed again by `uv sync`.
InstallerCommand uv_project_change(const Installer& installer, const PackageChange& change) {
  Words argv = installer.program;
  const bool again = change.reinstall;
  add(argv, {again ? "sync" : "add", "--project", installer.project});
  // As the lock says, and without removing what the project does not know: our own modules, say.
  if (again) add(argv, {"--frozen", "--inexact"});
  for (const std::string& requirement : change.requirements) {
    const std::string name = required_name(requirement);
    if (again) add(argv, {"--reinstall-package", name});
    if (!again && change.upgrade) add(argv, {"--upgrade-package", name});
    if (!change.isolated_build) add(argv, {"--no-build-isolation-package", name});
  }
  for (const std::string& name : change.from_source) add(argv, {"--no-binary-package", name});
  if (!again) add(argv, change.requirements);
  // A variable of the shell may name another environment for the project than the one that is repaired.
  const std::string prefix = path_dirname(path_dirname(installer.environment));
  return {argv, {"UV_PROJECT_ENVIRONMENT=" + prefix}, installer.project, {}};
}

// conda has no constraints for one command: --freeze-installed keeps every installed package.
InstallerCommand conda_change(const Installer& installer, const PackageChange& change) {
  Words argv = installer.program;
  add(argv, {"install", "--yes", "--prefix", installer.environment});
  if (change.reinstall) argv.emplace_back("--force-reinstall");
  if (change.reinstall || !change.dependencies) argv.emplace_back("--no-deps");
  if (!held_by(change).empty()) argv.emplace_back("--freeze-installed");
  for (const std::string& requirement : change.requirements) argv.push_back(conda_requirement(requirement));
  return {argv, {}, "", {}};
}

// `uv sync` reinstalls only what uv.lock names.
bool all_locked(const Installer& installer, const PackageChange& change) {
  return std::ranges::all_of(change.requirements, [&](const std::string& requirement) {
    return !is_file(requirement) && installer.locked.contains(required_name(requirement));
  });
}

// Whether the project's records can express the change; a path would be valid on this machine only.
bool project_can(const Installer& installer, const PackageChange& change) {
  if (installer.project.empty()) return false;
  if (change.reinstall) return all_locked(installer, change);
  return change.dependencies && std::ranges::none_of(change.requirements, is_file);
}

}  // namespace

std::string shown(const InstallerCommand& command) {
  std::string text;
  if (!command.folder.empty()) text.append("cd ").append(shell_quoted(command.folder)).append(" &&");
  const auto add_word = [&](const std::string& word) { text += (text.empty() ? "" : " ") + word; };
  for (const std::string& variable : command.environment) {
    const auto value = variable.find('=') + 1;  // a name in quotes is no assignment to a shell
    add_word(variable.substr(0, value) + shell_quoted(variable.substr(value)));
  }
  for (const std::string& word : command.argv) add_word(shell_quoted(word));
  if (!command.constraints.empty()) {
    text += " --constraint <(printf '%s\\n'";  // bash's, as a person may give it
    for (const std::string& line : command.constraints) text += " " + shell_quoted(line);
    text += ")";
  }
  return text;
}

std::vector<InstallerCommand> change_commands(const Installer& installer, const PackageChange& change) {
  switch (installer.kind) {
    case Installer::Kind::None:
      return {};
    case Installer::Kind::Pip:
      return {pip_change(installer, change)};
    case Installer::Kind::Conda:
      if (!change.from_source.empty() || std::ranges::any_of(change.requirements, is_file)) return {};
      return {conda_change(installer, change)};
    case Installer::Kind::Uv:
      break;
  }
  std::vector<InstallerCommand> commands;
  if (change.reinstall && std::ranges::none_of(change.requirements, is_file))
    commands.push_back(uv_forget(installer, change));
  commands.push_back(project_can(installer, change) ? uv_project_change(installer, change)
                                                    : uv_pip_change(installer, change));
  return commands;
}

bool kept_by_sync(const Installer& installer, const PackageChange& change) {
  return installer.project.empty() || project_can(installer, change);
}

InstallerCommand unpack_command(const Installer& downloader, const std::string& requirements,
                                const std::string& folder) {
  const Words what = {
      "--target", folder, "--no-deps", "--only-binary", ":all:", "--require-hashes", "-r", requirements};
  if (downloader.kind == Installer::Kind::Uv) {
    Words argv = downloader.program;
    add(argv, {"pip", "install"});
    if (!downloader.environment.empty()) add(argv, {"--python", downloader.environment});
    // A copy: a link would be into uv's cache, where another environment's damage reaches it.
    add(argv, {"--link-mode", "copy", "--no-progress"});
    add(argv, what);
    return {argv, {}, downloader.project, {}};
  }
  Words argv = pip_words(downloader, "install");
  add(argv, {"--no-compile", "--progress-bar", "off"});
  add(argv, what);
  // The folder is none of the user's environments, whatever their settings demand of those.
  return {argv, {"PIP_USER=0", "PIP_REQUIRE_VIRTUALENV=0"}, folder_of(downloader), {}};
}

InstallerCommand tools_command(const Installer& installer, const std::vector<std::string>& requirements,
                               const std::string& folder) {
  const bool is_uv = installer.kind == Installer::Kind::Uv;
  Words argv = is_uv ? installer.program : pip_words(installer, "install");
  if (is_uv) add(argv, {"pip", "install", "--python", installer.environment});
  add(argv, {"--target", folder});
  add(argv, requirements);
  if (is_uv) return {argv, {}, installer.project, {}};
  return {argv, {"PIP_USER=0", "PIP_REQUIRE_VIRTUALENV=0"}, folder_of(installer), {}};
}

// --no-cache-dir: pip would keep a wheel that was built for the torch of today.
InstallerCommand wheel_command(const Installer& installer, const std::string& folder,
                               const std::string& wheels, bool isolated) {
  const bool is_uv = installer.kind == Installer::Kind::Uv;
  Words argv = is_uv ? installer.program : pip_words(installer, "wheel");
  if (is_uv)
    add(argv, {"build", "--wheel", "--python", installer.environment, "--out-dir", wheels});
  else
    add(argv, {"--no-deps", "--no-cache-dir", "--wheel-dir", wheels});
  if (!isolated) argv.emplace_back("--no-build-isolation");
  argv.push_back(folder);
  return {argv, {}, is_uv ? "" : folder_of(installer), {}};
}

InstallerCommand download_command(const Installer& downloader, const std::string& requirement,
                                  const std::string& folder) {
  if (downloader.kind != Installer::Kind::Pip) return {};
  Words argv = pip_words(downloader, "download");
  add(argv, {"--no-deps", "--only-binary", ":all:", "--progress-bar", "off", "--dest", folder, requirement});
  return {argv, {"PIP_REQUIRE_VIRTUALENV=0"}, folder_of(downloader), {}};
}

}  // namespace scankit::installer
