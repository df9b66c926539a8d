// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <sstream>
#include <vector>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/python/sys_path.h"

namespace scankit::probes {
namespace {

// For the user and group that this process acts for: access() asks for those that started it.
bool may(const std::string& path, int mode) {
  return ::faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0;
}

// "" also for a file that this user may not execute, and for relative entries of PATH.
std::string program_on_path(const Host& host, const std::string& name) {
  std::istringstream folders(host.env("PATH").value_or(""));
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string path = path_join(folder, name);
    const auto info = host.stat(path);
    if (path.starts_with('/') && info && info->kind == FileKind::Regular && may(path, X_OK)) return path;
  }
  return "";
}

// The name, not the path: the command is printed as the user would type it.
std::string first_on_path(const Host& host, const std::array<const char*, 3>& names) {
  for (const char* name : names)
    if (!program_on_path(host, name).empty()) return name;
  return "";
}

// "pip-24.0.dist-info" of that folder -> "24.0"
std::string pip_version(const Host& host, const std::string& folder) {
  const auto entries = host.list(folder);
  if (!entries) return "";
  for (const DirEntry& entry : *entries)
    for (const char* ending : {".dist-info", ".egg-info"})
      if (entry.name.starts_with("pip-") && entry.name.ends_with(ending))
        return entry.name.substr(4, entry.name.size() - 4 - std::string_view(ending).size());
  return "";
}

// A venv without pip can be served by the pip of the Python that it was made from (`--python`, pip 22.3).
std::string base_with_pip(const Host& host, const Python& python) {
  const auto dot = python.version.find('.', python.version.find('.') + 1);
  const std::string minor = "python" + python.version.substr(0, dot);
  const std::string program = path_join(python.base_prefix, "bin/" + minor);
  if (python.prefix == python.base_prefix || !may(program, X_OK)) return "";
  // Upstream, Debian with its local prefix, Debian's own packages.
  for (const std::string& folder :
       {"lib/" + minor + "/site-packages", "local/lib/" + minor + "/dist-packages",
        std::string("lib/python3/dist-packages")}) {
    const std::string site = path_join(python.base_prefix, folder);
    const auto version = Version::parse(pip_version(host, site));
    if (version && *version >= *Version::parse("22.3") && host.exists(path_join(site, "pip/__main__.py")))
      return program;
  }
  return "";
}

// Where an installer of this environment writes: its first site directory, else the prefix, below which one
// would be made.
std::string site_of(const Python& python) {
  const auto site = std::ranges::find_if(
      python.sys_path, [](const PathEntry& entry) { return entry.origin == "site" && entry.exists; });
  return site == python.sys_path.end() ? python.prefix : site->path;
}

// /etc/passwd by hand: a static program must not load the system's name services.
std::string user_name(const Host& host, std::uint32_t uid) {
  constexpr std::size_t kLimit = 4u << 20;
  const auto text = host.read_file("/etc/passwd", kLimit);
  std::istringstream lines(text ? *text : "");
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string name, password, number;
    std::getline(fields, name, ':');
    std::getline(fields, password, ':');
    std::getline(fields, number, ':');
    if (number == std::to_string(uid) && !name.empty()) return name;
  }
  return english(message("user {}", uid));
}

// "" where this user may write. X_OK is needed as well: without it, no file of a directory can be made.
std::string owner_of_folder(const Host& host, const std::string& folder) {
  if (may(folder, W_OK | X_OK)) return "";
  const auto info = host.stat(folder);
  return info ? user_name(host, info->uid) : std::string("its owner");
}

constexpr std::size_t kMostOfCurrent = 4096;  // of the current directory

// "json" of json.py, of json.abi3.so, and of a directory that is a package; "" else.
std::string module_name(const Host& host, const std::string& folder, const DirEntry& entry) {
  const std::string& name = entry.name;
  if (name.ends_with(".py") || name.ends_with(".so")) return name.substr(0, name.find('.'));
  const bool is_package =
      name.find('.') == std::string::npos && host.exists(path_join(path_join(folder, name), "__init__.py"));
  return is_package ? name : "";
}

// A package pip of the current directory, or a module of it with a name of the standard library, which pip is full of.
// `test` is one that no program imports, and the name of many a directory.
std::string hides_pip(const Host& host, const Python& python) {
  if (python.sys_path.empty() || python.sys_path.front().origin != "cwd") return "";
  const std::string& here = python.sys_path.front().path;
  const auto entries = host.list(here);
  if (!entries) return "";
  for (std::size_t i = 0; i < std::min(entries->size(), kMostOfCurrent); ++i) {
    const std::string name = module_name(host, here, (*entries)[i]);
    if (name.empty() || name == "test") continue;
    const bool hides = name == "pip" || std::ranges::any_of(python.sys_path, [&](const PathEntry& entry) {
                         const std::string path = path_join(entry.path, name);
                         return entry.origin == "stdlib" && path_dirname(path) != here &&
                                (host.exists(path + ".py") || host.exists(path_join(path, "__init__.py")));
                       });
    if (hides) return path_join(here, (*entries)[i].name);
  }
  return "";
}

}  // namespace

// In a shell, `conda` may be a function for a program that is not on PATH and that these variables name.
std::string conda_command(const Host& host) {
  std::string name = first_on_path(host, {"conda", "mamba", "micromamba"});
  for (const char* variable : {"CONDA_EXE", "MAMBA_EXE"})
    if (const auto program = host.env(variable); name.empty() && program && host.is_program(*program))
      name = *program;
  return name;
}

Installers probe_installers(const Host& host, const Python& python) {
  Installers found;
  found.known = host.is_live();
  if (!found.known) return found;
  found.uv = program_on_path(host, "uv");
  found.conda = conda_command(host);
  found.base_pip = base_with_pip(host, python);
  if (const auto ensurepip = find_python_module(host, python, "ensurepip")) found.ensurepip = ensurepip->path;
  found.site = site_of(python);
  found.owner = owner_of_folder(host, found.site);
  found.pip_user = pip_user_setting(host, python);
  found.pip_hidden = hides_pip(host, python);
  return found;
}

bool is_yes(std::string_view text) {
  constexpr std::array<std::string_view, 6> kYes = {"y", "yes", "t", "true", "on", "1"};
  return std::ranges::find(kYes, lowered(trimmed(text))) != kYes.end();
}

// The value os.devnull of PIP_CONFIG_FILE makes pip load no file at all (pip/_internal/configuration.py).
std::vector<std::string> pip_config_files(const Host& host, const Python& python) {
  const std::string named = host.env("PIP_CONFIG_FILE").value_or("");
  if (named == "/dev/null") return {};
  std::vector<std::string> files;
  std::istringstream folders(host.env("XDG_CONFIG_DIRS").value_or("/etc/xdg"));
  for (std::string folder; std::getline(folders, folder, ':');)
    files.push_back(path_join(folder, "pip/pip.conf"));
  files.emplace_back("/etc/pip.conf");
  const std::string home = host.env("HOME").value_or(""), own = host.env("XDG_CONFIG_HOME").value_or("");
  if (!home.empty()) files.push_back(path_join(home, ".pip/pip.conf"));
  if (!own.empty() || !home.empty())
    files.push_back(path_join(own.empty() ? path_join(home, ".config") : own, "pip/pip.conf"));
  files.push_back(path_join(python.prefix, "pip.conf"));
  if (!named.empty()) files.push_back(named);
  return files;
}

namespace {

struct Said {
  std::optional<bool> global, install;
};

// As far as configparser's format matters for one boolean: "=" and ":" separate, keys come in any case,
// sections do not, and an indented line continues the value before it.
Said user_key_of(const std::string& text) {
  Said said;
  std::istringstream lines(text);
  std::string section;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#' || line[0] == ';' || line[0] == ' ' || line[0] == '\t') continue;
    if (line[0] == '[') {
      section = line.substr(1, line.find(']') - 1);
      continue;
    }
    const auto equals = line.find_first_of("=:");
    if (equals == std::string::npos || lowered(trimmed(line.substr(0, equals))) != "user") continue;
    if (section == "global") said.global = is_yes(line.substr(equals + 1));
    if (section == "install") said.install = is_yes(line.substr(equals + 1));
  }
  return said;
}

}  // namespace

// [install] in any file beats [global] in any other, so the two are kept apart until all files are read.
std::string pip_user_setting(const Host& host, const Python& python) {
  if (const auto variable = host.env("PIP_USER"); variable && !variable->empty())
    return is_yes(*variable) ? "$PIP_USER" : "";
  constexpr std::size_t kLimit = 1u << 20;
  std::string global, install;  // the file that says yes
  std::optional<bool> decided;
  for (const std::string& file : pip_config_files(host, python)) {
    const auto text = host.read_file(file, kLimit);
    const Said said = text ? user_key_of(*text) : Said{};
    if (said.global) global = *said.global ? file : "";
    if (said.install) decided = said.install, install = *said.install ? file : "";
  }
  return decided ? install : global;
}

}  // namespace scankit::probes
