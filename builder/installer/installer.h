// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <set>
#include <string>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

// The user's own installer: it knows their index, mirror, proxy and credentials, and its records stay true.
// Found by what lies there; nothing is run here. The commands are data, to be shown before they are run.
namespace scankit::installer {

// What installer_of() and downloader_of() found. The words of `program` begin every command line.
struct Installer {
  enum class Kind { None, Pip, Uv, Conda };
  Kind kind = Kind::None;
  std::vector<std::string> program;  // {".../bin/python", "-m", "pip"}; {".../uv"}; {".../conda"}
  std::string environment;           // uv: the interpreter that it is told; conda: the prefix
  std::string project;        // uv: the folder of the project whose `uv sync` makes this environment, or ""
  bool not_for_user = false;  // pip: its settings ask for --user, which this environment refuses
  std::set<std::string> locked;  // uv: the packages that the project's uv.lock names, normalised
  std::string why;               // how it was recognised; of None: why nothing may or can be installed here
  std::string instead;           // of None: what the user can do
};
std::string name_of(Installer::Kind kind);  // "pip", "uv", "conda", "none"
// Where its commands are run: pip in "/", uv in its project, whose settings it reads from there; "" for anywhere.
// `python -m pip` puts the current directory in front of sys.path, where a stranger's pip/ would be the program.
std::string folder_of(const Installer& installer);

// Which installer changes this environment. `package`: the one that is to be changed (conda where conda
// installed it), or "" for one that is not there yet.
Installer installer_of(const Host& host, const Snapshot& snapshot, const std::string& package = "");

// Which can bring a wheel into a folder of ours; that changes no environment, so that one that is managed by
// the operating system may serve too. None: scankit-fetch is what is left.
Installer downloader_of(const Host& host, const Snapshot& snapshot);

// The conda, mamba or micromamba of the user's shell: `conda` is a function there, which exports its program as
// CONDA_EXE. One that a variable names and that is gone is passed over.
struct ShellConda {
  std::string program;   // "": none
  std::string found_by;  // "CONDA_EXE", "MAMBA_EXE", "PATH"
};
ShellConda conda_of_shell(const Host& host);

// The directory of the uv project whose `uv sync` makes this environment, even if uv itself is not installed;
// "" if there is no such project.
std::string uv_project_of(const Host& host, const Python& python);

// One command as data: a plan shows it, run_installer() (fix/execute.h) runs it.
struct InstallerCommand {
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // "NAME=value", beside what is inherited
  std::string folder;                    // to run in (folder_of()); "" for anywhere
  std::vector<std::string> constraints;  // lines of the file that --constraint names; made when it is run
};
std::string shown(const InstallerCommand& command);  // as a shell takes it

// What is to change, independent of the installer; change_commands() translates it into command lines.
struct PackageChange {
  std::vector<std::string> requirements;  // "torch==2.11.0", "einops"; or the path of a wheel
  bool upgrade = false;
  bool reinstall = false;      // also where the records say that they are there; without their dependencies
  bool dependencies = true;    // false: --no-deps
  bool isolated_build = true;  // false: built against what is installed
  std::vector<std::string> from_source;  // names whose wheels are not to be taken
  std::vector<std::string> held;         // what must stay as it is: "torch==2.11.0"
};
// To be run one after the other. Empty for Kind::None, and where this installer cannot do it (conda builds
// nothing from source).
std::vector<InstallerCommand> change_commands(const Installer& installer, const PackageChange& change);
// Whether the next `uv sync` of the project keeps the change; true where there is no project.
bool kept_by_sync(const Installer& installer, const PackageChange& change);

// Unpacks wheels into `folder`. `requirements`: a file of "NAME==VERSION --hash=sha256:HEX" lines; what has
// another hash is refused by the installer. pip and uv only.
InstallerCommand unpack_command(const Installer& downloader, const std::string& requirements,
                                const std::string& folder);
// Installs further packages that a build needs into a directory of ours. pip and uv only.
InstallerCommand tools_command(const Installer& installer, const std::vector<std::string>& requirements,
                               const std::string& folder);
// Builds the wheel of the sources in `folder` into the directory `wheels`, and installs nothing. pip and uv only.
InstallerCommand wheel_command(const Installer& installer, const std::string& folder,
                               const std::string& wheels, bool isolated);
// One wheel as a file in `folder`, without what it depends on. pip only: uv has no such command.
InstallerCommand download_command(const Installer& downloader, const std::string& requirement,
                                  const std::string& folder);

// Variables that make pip or uv install somewhere else than into the environment that they are told, or nowhere.
inline constexpr std::array<const char*, 7> kPlaceVariables = {
    "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_PYTHON", "PIP_DRY_RUN", "UV_TARGET", "UV_PREFIX"};
// The variables that the command is run with: its own before ours, none of kPlaceVariables, and paths of pip's
// settings absolute, since it is run in another directory.
std::vector<std::string> variables_of(const InstallerCommand& command);
// The same for their settings, which cannot be switched off without those of the index: an Error names the file and
// the key. The file may be a stranger's, as the pyproject.toml of the directory in which scankit was started.
Result<void> check_not_diverted(const Host& host, const Python& python, const Installer& installer);

// Whether pip's settings name an index and uv's do not. uv does not read pip's variables and files, so that it
// would ask its default index instead of the user's.
bool pip_has_its_own_index(const Host& host, const Python& python);

// "Nvidia_NVRTC.cu12" -> "nvidia-nvrtc-cu12" (PEP 503), of the part of a requirement before its version.
std::string required_name(const std::string& requirement);

}  // namespace scankit::installer
