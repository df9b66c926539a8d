// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/packages/repairs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/model/json.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/python/python.h"
#include "doctor/probes/python/python_layout.h"
#include "doctor/probes/python/python_text.h"

namespace scankit::probes {
namespace {
using Json = nlohmann::json;

// The layout is builder/README.md's, and theirs to change: BASE/.scankit/journal/ID.json with "state" and
// "module", BASE/.scankit/lock with the process that holds it. BASE is the prefix, the user base, or a folder
// of --target, which is on the path.
std::set<std::string> bases(const Python& python) {
  std::set<std::string> folders{python.prefix};
  for (const PathEntry& entry : python.sys_path) {
    if (!entry.exists || entry.origin == "stdlib" || entry.origin == "lib-dynload") continue;
    folders.insert(entry.path);
    // USERBASE/lib/pythonX.Y/site-packages
    if (entry.origin == "user-site") folders.insert(path_dirname(path_dirname(path_dirname(entry.path))));
  }
  folders.erase("");
  return folders;
}

// The lock file has the decimal id of the process that runs the fix. A recycled id is taken for a living
// fix, which only delays the advice to restore. An unpacked root has no processes.
bool holder_lives(const Host& host, const std::string& state_folder) {
  const auto text =
      host.is_live() ? host.read_file(path_join(state_folder, "lock"), 64) : Result<std::string>("");
  if (!text || text->empty() || text->find_first_not_of("0123456789\n") != std::string::npos) return false;
  return host.exists("/proc/" + text->substr(0, text->find('\n')));
}

// An environment travels, and brings the journals of whoever made it: `scankit restore` believes only what
// this user or root wrote, and nobody else could have. Of an image we see the owners of another machine.
bool is_own(const Host& host, const std::string& path, FileKind kind) {
  const auto info = host.lstat(path);
  if (!info || info->kind != kind) return false;
  if (!host.is_live()) return true;
  const unsigned user = ::geteuid();
  return (info->uid == user || info->uid == 0 || user == 0) && (info->mode & (S_IWGRP | S_IWOTH)) == 0;
}

// "0001.json": at least four digits. A file of any other name is not one that scankit wrote.
bool is_journal_name(const std::string& name) {
  const std::string id = name.substr(0, name.size() - 5);  // without .json
  return id.size() >= 4 && id.find_first_not_of("0123456789") == std::string::npos;
}

// A journal that is not ours, or cannot be parsed, is still reported, but with an empty state and module:
// what a stranger wrote into it must not reach the advice. At most 20 for one environment.
void read_journals(const Host& host, const std::string& base, std::vector<UnfinishedRepair>& found) {
  const std::string state_folder = path_join(base, ".scankit"), folder = path_join(state_folder, "journal");
  const auto entries = host.list(folder);
  if (!entries) return;
  const bool own_folder =
      is_own(host, state_folder, FileKind::Directory) && is_own(host, folder, FileKind::Directory);
  for (const DirEntry& entry : *entries) {
    if (!entry.name.ends_with(".json") || found.size() >= 20) continue;
    const std::string path = path_join(folder, entry.name);
    const auto text = host.read_file(path, 1u << 20);
    const Json json = text ? parse_json_or_discard<Json>(*text) : Json();
    const std::string state = json.is_object() ? json_text(json, "state") : "";
    if (state == "committed" || state == "undone") continue;
    const bool own = own_folder && is_journal_name(entry.name) && is_own(host, path, FileKind::Regular);
    // Of a newer scankit nothing is known but that there is one: it may mean something else by the same words.
    const bool known = own && schema_number(json) <= 1 && (state == "applying" || state == "undoing");
    found.push_back({path, known ? state : "", known ? json_text(json, "module") : "",
                     known && holder_lives(host, state_folder)});
  }
}

}  // namespace

Probed<std::vector<UnfinishedRepair>> probe_repairs(const Host& host, const Python& python) {
  std::vector<UnfinishedRepair> found;
  for (const std::string& base : bases(python)) read_journals(host, base, found);
  if (!found.empty()) return Probed<std::vector<UnfinishedRepair>>::of(std::move(found));
  return Probed<std::vector<UnfinishedRepair>>::absent(message("no scankit fix was left unfinished"));
}

namespace {

struct VenvFile {
  std::string series;  // "3.11"; "" where pyvenv.cfg does not say
  bool by_uv = false;
};

// pyvenv.cfg without the interpreter beside it, which is what is missing.
VenvFile read_venv_file(const Host& host, const std::string& folder) {
  VenvFile found;
  const auto text = host.read_file(path_join(folder, "pyvenv.cfg"), 1u << 16);
  if (!text) return found;
  for (const std::string_view line : lines_of(*text)) {
    const auto equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string key = lowered(trimmed(line.substr(0, equals)));
    const std::string value(trimmed(line.substr(equals + 1)));
    if (key == "uv") found.by_uv = true;
    if (key != "version" && key != "version_info") continue;
    const auto dot = value.find('.');
    const auto end = dot == std::string::npos ? dot : value.find_first_not_of("0123456789", dot + 1);
    if (dot != std::string::npos) found.series = value.substr(0, end);
  }
  return found;
}

std::optional<std::string> find_on_path(const Host& host, const std::string& name) {
  for (const std::string& folder : path_folders(host)) {
    std::string file = path_join(folder, name);
    if (host.is_program(file)) return file;
  }
  return std::nullopt;
}

// pyenv's shims are scripts; other scripts are not looked through.
std::string behind_shim(const Host& host, const std::string& program) {
  const auto head = read_head(host, program, 1u << 16);
  if (!head || !head->starts_with("#!") || head->find("pyenv") == std::string::npos) return program;
  return pyenv_target(host, *head, path_basename(program)).value_or("");
}

// Debian keeps ensurepip in a package of its own; without it `python3 -m venv` fails.
bool makes_venvs(const Host& host, const std::string& python) {
  const auto real = host.realpath(python);
  const auto binary = real ? read_python_binary(host, *real) : Result<PythonBinary>(real.error());
  if (!binary || !binary->python) return false;
  const auto layout = read_python_layout(host, python);
  return layout && layout->major == 3 && host.exists(path_join(layout->stdlib, "ensurepip/__init__.py"));
}

std::vector<std::string> names_of(const std::string& series) {
  std::vector<std::string> names = {"python3", "python"};
  if (!series.empty()) names.insert(names.begin(), "python" + series);
  return names;
}

// conda keeps what is installed in conda-meta, so the environment can be completed where it is. By force: a Python that is
// recorded is installed to conda, whether or not its files are there. mamba 2 and micromamba ask the pip of the environment
// for its packages before anything else, and fail without a Python (2.8.1).
EnvironmentRepair repair_of_conda(const Host& host, const std::string& folder) {
  const std::string conda = conda_command(host);
  if (path_basename(conda) == "conda")
    return {message("install a Python in this conda environment"),
            shell_line({conda, "install", "-p", folder, "--force-reinstall", "python"})};
  if (!conda.empty())
    return {message("{} cannot install into an environment without Python: recreate the environment, or "
                    "choose another Python with --python",
                    path_basename(conda)),
            ""};
  return {message("install a Python in this conda environment, or choose another Python with --python"), ""};
}

EnvironmentRepair repair_of(const Host& host, const std::string& origin, const std::string& folder,
                            const Error& why) {
  const auto there = host.stat(folder);
  if (why.code == Errc::PermissionDenied || (!there && there.error().code == Errc::PermissionDenied))
    return {message("run scankit as a user with read permission, or choose another Python with --python"),
            ""};
  if (!there && origin != "./.venv")
    return {message("deactivate the environment, which no longer exists"), shell_line({"unset", origin})};
  if (there && there->kind != FileKind::Directory)
    return {message("give the directory of an environment, or the Python with --python"), ""};
  if (origin == "CONDA_PREFIX" || host.is_directory(path_join(folder, "conda-meta")))
    return repair_of_conda(host, folder);
  return repair_of_venv(host, folder);
}

}  // namespace

EnvironmentRepair repair_of_venv(const Host& host, const std::string& folder) {
  const VenvFile venv = read_venv_file(host, folder);
  const Message text = message("recreate the environment, and reinstall its packages");
  const auto uv = find_on_path(host, "uv");
  const auto with_uv = [&] {
    std::vector<std::string> words = {"uv", "venv", "--clear"};
    if (!venv.series.empty()) words.insert(words.end(), {"--python", venv.series});
    words.push_back(folder);
    return EnvironmentRepair{text, shell_line(words)};
  };
  if (uv && venv.by_uv) return with_uv();
  for (const std::string& name : names_of(venv.series)) {
    const auto python = find_on_path(host, name);
    if (python && makes_venvs(host, behind_shim(host, *python)))
      return {text, shell_line({name, "-m", "venv", "--clear", folder})};
  }
  if (uv) return with_uv();
  const std::string name = venv.series.empty() ? "python3" : "python" + venv.series;
  return {message("install {} with its venv module, then recreate the environment: {}", name,
                  shell_line({name, "-m", "venv", "--clear", folder})),
          ""};
}

BrokenEnvironment broken_environment(const Host& host, const std::string& origin, const std::string& folder,
                                     const Error& why) {
  const EnvironmentRepair repair = repair_of(host, origin, folder, why);
  return {origin, folder, why.message, repair.text, repair.command};
}

Error error_of(const BrokenEnvironment& broken) {
  return {Errc::ToolFailed, message("{}: {}", broken.origin, broken.reason),
          broken.command.empty() ? broken.repair : message("{}: {}", broken.repair, broken.command)};
}

}  // namespace scankit::probes
