// SPDX-License-Identifier: Apache-2.0
// Finding the installer. Nothing is run: an installer is recognised by its files, by the snapshot's records
// and by a few variables. The commands themselves are in installer_commands.cc.
#include "builder/installer/installer.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "builder/fix/install_target.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/python/python.h"
#include "doctor/probes/python/sys_path.h"

namespace scankit::installer {
namespace {

// Skips relative entries, as PATH may have them: what they mean depends on the current directory.
std::string first_program(const Host& host, const std::vector<std::string>& candidates) {
  for (const std::string& path : candidates)
    if (path.starts_with('/') && host.is_program(path)) return path;
  return "";
}

void add_path(const Host& host, const std::string& name, std::vector<std::string>& candidates) {
  std::istringstream folders(host.env("PATH").value_or(""));
  for (std::string folder; std::getline(folders, folder, ':');) candidates.push_back(path_join(folder, name));
}

// uv tells what it starts where it lies ($UV); its installer script puts it into ~/.local/bin, an older one
// into ~/.cargo/bin; `pip install uv` into the environment.
std::string find_uv(const Host& host, const Python& python) {
  std::vector<std::string> candidates = {host.env("UV").value_or("")};
  add_path(host, "uv", candidates);
  const std::string home = host.env("HOME").value_or("");
  for (const char* folder : {"/.local/bin/uv", "/.cargo/bin/uv"}) candidates.push_back(home + folder);
  candidates.push_back(python.prefix + "/bin/uv");
  return first_program(host, candidates);
}

// What the shell functions of conda and mamba export.
constexpr const char* kCondaVariables[] = {"CONDA_EXE", "MAMBA_EXE"};
constexpr const char* kCondaNames[] = {"conda", "mamba", "micromamba"};

// The conda that made the environment, if it is still there. First the one of the user's shell. Next come the
// conda of the prefix itself, for a base environment, and the one above "envs". conda-meta/history records the
// command lines that changed the environment.
std::string find_conda(const Host& host, const Python& python) {
  std::vector<std::string> candidates;
  for (const char* name : kCondaVariables) candidates.push_back(host.env(name).value_or(""));
  const std::string& prefix = python.base_prefix;
  // Not bin/mamba: the index has a test runner of that name.
  for (const char* name : {"/bin/conda", "/bin/micromamba"}) candidates.push_back(prefix + name);
  if (path_basename(path_dirname(prefix)) == "envs")
    for (const std::string name : kCondaNames)
      candidates.push_back(path_dirname(path_dirname(prefix)) + "/bin/" + name);
  constexpr std::size_t kLimit = 4u << 20;
  const auto history = host.read_file(prefix + "/conda-meta/history", kLimit);
  std::istringstream lines(history ? *history : "");
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("# cmd: ")) {
      const std::string program = line.substr(7, line.find(' ', 7) - 7);
      if (std::ranges::find(kCondaNames, path_basename(program)) != std::end(kCondaNames))
        candidates.push_back(program);
    }
  for (const char* name : kCondaNames) add_path(host, name, candidates);
  return first_program(host, candidates);
}

Installer none(std::string why, std::string instead) {
  return {.why = std::move(why), .instead = std::move(instead)};
}

// The installer, or None if root would run another user's program.
Installer if_ours(const Host& host, Installer installer) {
  const auto foreign = probes::foreign_to_root(host, installer.program[0]);
  if (!foreign) return installer;
  return none(say("{} belongs to user {}, and running it would run that user's code as root", foreign->path,
                  foreign->uid),
              say("run scankit as that user"));
}

// `uv sync` and `uv run` make <project>/.venv, or the directory that UV_PROJECT_ENVIRONMENT names, relative
// to the project. A project has a pyproject.toml, and a uv.lock as soon as uv has resolved it; without
// uv.lock the directory does not count as a project of uv's.
std::string uv_project(const Host& host, const Python& python) {
  const auto is_project = [&](const std::string& folder) {
    return host.exists(path_join(folder, "uv.lock")) && host.exists(path_join(folder, "pyproject.toml"));
  };
  if (path_basename(python.prefix) == ".venv" && is_project(path_dirname(python.prefix)))
    return path_dirname(python.prefix);
  const std::string named = host.env("UV_PROJECT_ENVIRONMENT").value_or("");
  for (std::string folder = path_dirname(python.prefix); !named.empty(); folder = path_dirname(folder)) {
    if (is_project(folder) && path_normalize(path_join(folder, named)) == python.prefix) return folder;
    if (folder.size() <= 1) break;
  }
  const std::string here = current_directory();
  const bool named_from_here =
      !named.empty() && path_normalize(path_join(here, named)) == python.prefix && is_project(here);
  return named_from_here ? here : "";
}

// The names of all packages in uv.lock. It is TOML that uv writes itself: the name of each [[package]] has a
// line of its own, while a dependency's name is inside an indented inline table and does not begin the line.
std::set<std::string> locked_by(const Host& host, const std::string& project) {
  std::set<std::string> names;
  constexpr std::size_t kLimit = 64u << 20;
  const auto lock = host.read_file(path_join(project, "uv.lock"), kLimit);
  std::istringstream lines(lock ? *lock : "");
  const std::string key = "name = \"";
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(key)) names.insert(line.substr(key.size(), line.find('"', key.size()) - key.size()));
  return names;
}

Installer uv(const Host& host, const Python& python, std::string why) {
  Installer installer{.kind = Installer::Kind::Uv,
                      .program = {find_uv(host, python)},
                      .environment = fix::interpreter_of(python),
                      .project = uv_project(host, python),
                      .why = std::move(why)};
  if (!installer.project.empty()) {
    installer.locked = locked_by(host, installer.project);
    installer.why = say("this is the environment of the uv project {}", installer.project);
  }
  return if_ours(host, std::move(installer));
}

// A pip setting that asks for --user makes every install into a venv fail; the commands then set PIP_USER=0.
Installer pip(const Host& host, const Python& python, std::vector<std::string> program, std::string why) {
  const bool venv = python.prefix != python.base_prefix;
  return if_ours(host, {.kind = Installer::Kind::Pip,
                        .program = std::move(program),
                        .not_for_user = venv && !probes::pip_user_setting(host, python).empty(),
                        .why = std::move(why)});
}

const Distribution* distribution_of(const Snapshot& snapshot, const std::string& package) {
  const std::string wanted = required_name(package);
  for (const Distribution& known : snapshot.distributions.value)
    if (required_name(known.name) == wanted) return &known;
  return nullptr;
}

// pixi writes conda-meta/pixi into its environments and keeps them in PROJECT/.pixi/envs.
bool is_pixi(const Host& host, const Python& python) {
  return host.exists(python.base_prefix + "/conda-meta/pixi") ||
         python.base_prefix.find("/.pixi/envs/") != std::string::npos;
}

// For a package that conda's records name; `package` only serves the messages.
Installer conda(const Host& host, const Python& python, const Distribution& package) {
  if (is_pixi(host, python))
    return none(
        say("{} came from pixi, which resets the environment to its project's specification", package.name),
        say("change it there: pixi add"));
  const std::string program = find_conda(host, python);
  if (program.empty())
    return none(say("conda installed {}, but conda, mamba or micromamba was found neither on PATH nor in "
                    "CONDA_EXE or MAMBA_EXE",
                    package.name),
                say("put conda on PATH"));
  return if_ours(host, {.kind = Installer::Kind::Conda,
                        .program = {program},
                        .environment = python.base_prefix,
                        .why = say("conda installed {}", package.name)});
}

// The base Python, if its pip can serve a venv without pip (pip 22.3, `--python`); "" if it has none. The
// last two directories are Debian's and Ubuntu's.
std::string base_with_pip(const Host& host, const Python& python) {
  const auto dot = python.version.find('.', python.version.find('.') + 1);
  const std::string minor = "python" + python.version.substr(0, dot);
  const std::string program = first_program(host, {python.base_prefix + "/bin/" + minor});
  for (const std::string& folder :
       {"/lib/" + minor + "/site-packages/pip", "/local/lib/" + minor + "/dist-packages/pip",
        std::string("/lib/python3/dist-packages/pip")})
    if (!program.empty() && host.exists(python.base_prefix + folder + "/__main__.py")) return program;
  return "";
}

std::vector<std::string> pip_of(const std::string& interpreter) { return {interpreter, "-m", "pip"}; }

// The installer for what comes from a package index, in an environment that may be changed. uv comes first if
// it made the environment or installed torch: pip would change files behind the back of uv's records. Else
// pip, else whatever can serve an environment without pip.
Installer index_installer(const Host& host, const Snapshot& snapshot) {
  const Python& python = snapshot.python.value;
  // pip is code of the environment, and uv starts its Python.
  if (const auto foreign = probes::foreign_code(host, python))
    return none(say("{} belongs to user {}, and running it would run that user's code as root", foreign->path,
                    foreign->uid),
                say("run scankit as that user"));
  const std::string uv_program = find_uv(host, python);
  if (!uv_program.empty() && !uv_project(host, python).empty()) return uv(host, python, "");
  if (python.kind == "uv" && !uv_program.empty()) return uv(host, python, say("uv created this environment"));
  const Distribution* torch = distribution_of(snapshot, "torch");
  if (torch != nullptr && torch->installer == "uv" && !uv_program.empty())
    return uv(host, python, say("uv installed torch"));
  if (python.has_pip)
    return pip(host, python, pip_of(fix::interpreter_of(python)), say("this environment has pip"));
  const std::string base = base_with_pip(host, python);
  // uv would ask the public index for a package that the user's pip takes from a private one.
  const bool pip_knows_the_index = !base.empty() && pip_has_its_own_index(host, python);
  if (!uv_program.empty() && !pip_knows_the_index)
    return uv(host, python, say("this environment has no pip, but uv is available"));
  if (!base.empty())
    return pip(host, python, {base, "-m", "pip", "--python", fix::interpreter_of(python)},
               say("this environment has no pip; the pip of its base Python is used"));
  return none(python.kind == "uv" ? say("uv created this environment, but uv is not on PATH")
                                  : say("this environment has no pip, and uv was not found"),
              probes::find_python_module(host, python, "ensurepip")
                  ? say("put uv on PATH, or install pip: {}", fix::interpreter_of(python) + " -m ensurepip")
                  : say("put uv on PATH, or ask root to install ensurepip (Debian and Ubuntu: apt install "
                        "python3-venv)"));
}

}  // namespace

// The files are those of pip's configuration: global, user, legacy user and site.
bool pip_has_its_own_index(const Host& host, const Python& python) {
  for (const char* variable : {"UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL"})
    if (host.env(variable)) return false;
  for (const char* variable : {"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX"})
    if (host.env(variable)) return true;
  const std::string home = host.env("HOME").value_or(""), named = host.env("PIP_CONFIG_FILE").value_or("");
  const std::string settings = host.env("XDG_CONFIG_HOME").value_or(path_join(home, ".config"));
  for (const std::string& file : {named, std::string("/etc/pip.conf"), std::string("/etc/xdg/pip/pip.conf"),
                                  path_join(settings, "pip/pip.conf"), path_join(home, ".pip/pip.conf"),
                                  path_join(python.prefix, "pip.conf")})
    if (const auto text = host.read_file(file, 1u << 20); text && text->find("index") != std::string::npos)
      return true;
  return false;
}

ShellConda conda_of_shell(const Host& host) {
  for (const char* name : kCondaVariables)
    if (const std::string program = first_program(host, {host.env(name).value_or("")}); !program.empty())
      return {program, name};
  std::vector<std::string> candidates;
  for (const char* name : kCondaNames) add_path(host, name, candidates);
  return {first_program(host, candidates), "PATH"};
}

std::string uv_project_of(const Host& host, const Python& python) { return uv_project(host, python); }

std::string name_of(Installer::Kind kind) {
  constexpr const char* kNames[] = {"none", "pip", "uv", "conda"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string folder_of(const Installer& installer) {
  return installer.kind == Installer::Kind::Pip ? "/" : installer.project;
}

std::string required_name(const std::string& requirement) {
  const auto end = std::ranges::find_if_not(requirement, [](char c) {
    return c == '-' || c == '_' || c == '.' || std::isalnum(static_cast<unsigned char>(c)) != 0;
  });
  return normalized_name({requirement.begin(), end});
}

Installer installer_of(const Host& host, const Snapshot& snapshot, const std::string& package) {
  if (!snapshot.python.present())
    return none(say("no Python environment was found"), say("choose one with --python"));
  const Python& python = snapshot.python.value;
  if (python.externally_managed)
    return none(
        say("{} is managed by the operating system's package manager (EXTERNALLY-MANAGED)", python.prefix),
        say("use a venv of your own: {}", "python3 -m venv .venv"));
  const Distribution* known = package.empty() ? nullptr : distribution_of(snapshot, package);
  if (known != nullptr && !known->conda_channel.empty()) return conda(host, python, *known);
  return index_installer(host, snapshot);
}

// Tries what serves the environment itself, then any uv, then each python3 of PATH that has a pip.
Installer downloader_of(const Host& host, const Snapshot& snapshot) {
  const Python& python = snapshot.python.value;
  if (snapshot.python.present()) {
    // Also where it is managed by the system or by pixi: the folder is ours.
    Installer own = index_installer(host, snapshot);
    if (own.kind != Installer::Kind::None) return own;
  }
  if (const std::string program = find_uv(host, python); !program.empty())
    return if_ours(host, {.kind = Installer::Kind::Uv, .program = {program}, .why = say("uv is available")});
  std::vector<std::string> pythons;
  add_path(host, "python3", pythons);
  for (const std::string& candidate : pythons) {
    const std::string real = host.realpath(candidate).value_or("");
    // The version is what follows "python" in the name of the file, "3.11" of python3.11. Every distribution
    // keeps pip below <prefix>/lib/pythonX.Y, so that no interpreter has to be started.
    Python guess{.version = path_basename(real).substr(std::min<std::size_t>(6, path_basename(real).size()))};
    guess.base_prefix = path_dirname(path_dirname(real));
    if (!base_with_pip(host, guess).empty())
      return pip(host, python, pip_of(candidate), say("{} has pip", candidate));
  }
  return none(say("neither uv nor a Python with pip was found"), say("put uv on PATH"));
}

}  // namespace scankit::installer
