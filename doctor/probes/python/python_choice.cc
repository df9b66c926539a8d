// SPDX-License-Identifier: Apache-2.0
// Three subjects, in this order: root file systems and the Pythons in them, code that root must not run, and
// the choice itself. The choice only follows names and links; python.h says whether a candidate is a Python,
// repairs.h what to do about an active environment that is broken.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/probes/extensions/extensions.h"
#include "doctor/probes/packages/repairs.h"
#include "doctor/probes/python/python.h"
#include "doctor/probes/python/python_layout.h"
#include "doctor/probes/python/python_text.h"
#include "doctor/probes/python/sys_path.h"

namespace scankit::probes {
namespace {

// A root file system has at least one of these at its top. A directory with more than kManyEntries entries
// is not one of environments, and looking at each entry would take too long.
constexpr std::array kSigns{"usr", "bin", "lib", "lib64", "etc"};
constexpr std::size_t kManyEntries = 256;

Error no_root(const std::string& folder, const Message& why, Message hint) {
  return {Errc::InvalidArgument, message("--root {}: {}", printable(folder), why), std::move(hint)};
}

// What `docker save`, skopeo and buildah write: the layers, not the files. The OCI image layout has a file
// `oci-layout`; the older format of `docker save` has `manifest.json` and `repositories`.
bool is_packed_image(const Host& host, const std::string& folder) {
  return host.exists(path_join(folder, "oci-layout")) ||
         (host.exists(path_join(folder, "manifest.json")) && host.exists(path_join(folder, "repositories")));
}

// At most one entry an environment. lstat is enough: whether the link leads to a Python is for
// find_interpreter() to say.
void add_environment(const Host& host, const std::string& folder, std::vector<PlacedPython>& found) {
  for (const char* name : {"bin/python", "bin/python3"}) {
    const std::string file = path_join(folder, name);
    if (!host.lstat(file)) continue;
    found.push_back({file, folder});
    return;
  }
}

// Environments in the folders of `parent`: /opt/NAME, /opt/conda/envs/NAME, /home/NAME/.venv.
void add_children(const Host& host, const std::string& parent, const std::string& below,
                  std::vector<PlacedPython>& found) {
  const auto entries = host.list(parent);
  if (!entries || entries->size() > kManyEntries) return;
  for (const DirEntry& entry : *entries)
    if (entry.kind != FileKind::Regular)
      add_environment(host, path_join(path_join(parent, entry.name), below), found);
}

}  // namespace

Result<std::string> root_folder(const std::string& folder) {
  const auto host = make_real_host();
  auto real = host->realpath(folder);
  if (!real) return no_root(folder, real.error().message, message("give the directory of an unpacked image"));
  if (*real == "/")
    return no_root(folder, message("that is the running system"),
                   message("omit --root to look at this machine"));
  if (!host->is_directory(*real))
    return no_root(folder, message("not a directory"),
                   message("unpack the image first, for example: docker export CONTAINER | tar -x -C DIR"));
  if (const auto listed = host->list(*real); !listed)
    return no_root(folder, listed.error().message, message("run as a user with read permission"));
  if (is_packed_image(*host, *real))
    return no_root(folder, message("it contains an image's layers, not its files"),
                   message("unpack it first, for example with: umoci unpack, or docker export | tar -x"));
  const bool looks_so =
      std::ranges::any_of(kSigns, [&](const char* sign) { return host->exists(path_join(*real, sign)); });
  if (!looks_so)
    return no_root(folder,
                   message("not a root file system: it contains none of usr, bin, lib, lib64 and etc"),
                   message("give the directory that contains them"));
  return real;
}

std::vector<PlacedPython> pythons_in_root(const Host& host) {
  std::vector<PlacedPython> found;
  for (const char* folder :
       {"/venv", "/.venv", "/app/.venv", "/app/venv", "/workspace/.venv", "/workspace/venv", "/src/.venv",
        "/root/.venv", "/root/venv", "/root/miniconda3", "/root/miniforge3", "/opt/conda"})
    add_environment(host, folder, found);
  for (const char* parent : {"/opt", "/opt/conda/envs", "/root/miniconda3/envs", "/root/.pyenv/versions"})
    add_children(host, parent, "", found);
  add_children(host, "/home", ".venv", found);
  return found;
}

namespace {

std::optional<ForeignCode> first_foreign(const Host& host, const std::vector<std::string>& paths) {
  for (const std::string& path : paths)
    if (auto foreign = foreign_to_root(host, path)) return foreign;
  return std::nullopt;
}

// What site.py runs at every start: lines of .pth files, and the modules sitecustomize and usercustomize.
bool runs_at_start(const std::string& name) {
  return name.ends_with(".pth") || name == "sitecustomize.py" || name == "usercustomize.py";
}

}  // namespace

std::optional<ForeignCode> foreign_to_root(const Host& host, const std::string& path) {
  // An import would run as the effective user. A path that does not exist cannot run.
  if (::geteuid() != 0 || path.empty()) return std::nullopt;
  const auto info = host.stat(path);
  if (!info || info->uid == 0) return std::nullopt;
  return ForeignCode{path, info->uid};
}

std::optional<ForeignCode> foreign_code(const Host& host, const Python& python) {
  if (::geteuid() != 0) return std::nullopt;
  // The directories themselves count too: their owner can put a new module there at any time. Only the top
  // of each is listed, because site.py reads nothing below it.
  std::vector<std::string> paths = {python.requested, python.executable, python.prefix};
  for (const PathEntry& entry : python.sys_path) {
    if (!entry.exists) continue;
    paths.push_back(entry.path);
    if (const auto entries = host.list(entry.path))
      for (const DirEntry& file : *entries)
        if (runs_at_start(file.name)) paths.push_back(path_join(entry.path, file.name));
  }
  return first_foreign(host, paths);
}

std::optional<ForeignCode> foreign_code(const Host& host, const Snapshot& snapshot) {
  if (auto foreign = foreign_code(host, snapshot.python.value)) return foreign;
  std::vector<std::string> paths;
  if (snapshot.torch.present()) paths.push_back(snapshot.torch.value.location);
  for (const Extension& file : snapshot.extensions.value)
    if (file.selected) paths.push_back(file.path);
  for (const PackageFound& package : snapshot.packages.value.found) paths.push_back(package.path);
  // A module may be a Python file as well: an import runs whatever has the name.
  std::vector<std::string> names = snapshot.modules;
  names.emplace_back("torch");
  for (const std::string& name : names)
    if (const auto found = find_python_module(host, snapshot.python.value, name)) {
      paths.push_back(found->path);
      if (found->package) paths.push_back(path_join(found->path, "__init__.py"));
    }
  return first_foreign(host, paths);
}

namespace {

struct PythonCandidate {
  std::string path, origin;
  bool active = false;  // the environment that the user works in: no other is meant
};

Message chosen_line(const Interpreter& found, const Message& origin) {
  std::string scripts;
  for (const std::string& script : found.through)
    scripts += (scripts.empty() ? "" : ", ") + printable(script);
  if (scripts.empty()) return message("Python: {} ({})", printable(found.path), origin);
  return message("Python: {} ({}, through the script {})", printable(found.path), origin, scripts);
}

// In the order in which a user would expect them to win. A file ./.venv is not an environment: pipenv,
// poetry and shell plug-ins keep the name of one in it. An unpacked root has no variables and no current
// directory, so that the default PATH alone remains.
std::vector<PythonCandidate> sources(const Host& host) {
  std::vector<PythonCandidate> candidates;
  const auto folder = [&](const std::string& path, const std::string& origin) {
    if (!path.empty()) candidates.push_back({absolute_path(host, path), origin, true});
  };
  folder(host.env("VIRTUAL_ENV").value_or(""), "VIRTUAL_ENV");
  const std::string current = working_directory(host);
  if (const std::string own = path_join(current, ".venv");
      !current.empty() && host.lstat(own) && !is_regular_file(host, own))
    folder(own, "./.venv");
  folder(host.env("CONDA_PREFIX").value_or(""), "CONDA_PREFIX");
  for (const std::string& each : path_folders(host))
    for (const char* name : {"python", "python3"})
      if (host.lstat(path_join(each, name))) candidates.push_back({path_join(each, name), "PATH", false});
  return candidates;
}

// Of conda's installers, and of micromamba: 1 and the first 2.x, then those that follow XDG.
constexpr std::array kCondaRoots{"miniconda3/envs", "miniforge3/envs", "anaconda3/envs",
                                 "mambaforge/envs", "micromamba/envs", ".local/share/mamba/envs",
                                 ".conda/envs"};

// Where people keep environments that PATH does not reach: pyenv's versions and conda's environments. They
// are never chosen; list_others() mentions those that have torch.
std::vector<PythonCandidate> elsewhere(const Host& host) {
  std::vector<PythonCandidate> candidates;
  const std::string home = host.env("HOME").value_or("");
  const auto children = [&](const std::string& folder, const std::string& origin) {
    const auto entries = host.list(folder);
    if (!entries || entries->size() > 64) return;
    for (const DirEntry& entry : *entries)
      if (const std::string file = path_join(folder, entry.name + "/bin/python"); host.lstat(file))
        candidates.push_back({file, origin, false});
  };
  const std::string pyenv = host.env("PYENV_ROOT").value_or(home.empty() ? "" : path_join(home, ".pyenv"));
  if (!pyenv.empty()) children(path_join(pyenv, "versions"), "pyenv");
  if (!home.empty())
    for (const char* conda : kCondaRoots) children(path_join(home, conda), "conda");
  if (const auto root = host.env("MAMBA_ROOT_PREFIX")) children(path_join(*root, "envs"), "conda");
  return candidates;
}

// Version of the torch that this interpreter would import; "" where it has none. Cheaper than the torch
// probe: no library is read. The current directory and PYTHONPATH do not count, because they are the same
// for every interpreter and would give each of them the same torch.
std::string torch_of(const Host& host, const std::string& interpreter) {
  const auto layout = read_python_layout(host, interpreter);
  if (!layout || layout->major != 3) return {};
  Python python;
  compute_sys_path(host, *layout, python);
  for (const PathEntry& entry : python.sys_path) {
    if (entry.origin == "cwd" || entry.origin == "pythonpath") continue;
    if (const auto text = host.read_file(path_join(entry.path, "torch/version.py"), 1u << 20))
      return version_file_value(*text, "__version__");
  }
  return {};
}

// One environment has many names: bin/python, bin/python3, /bin and /usr/bin. A venv is identified by its
// bin directory, because its bin/python resolves to the base interpreter, which several venvs share.
std::string identity(const Host& host, const std::string& interpreter) {
  const std::string folder = path_dirname(interpreter);
  if (const auto venv = read_venv_config(host, interpreter); venv && venv->has_value())
    return host.realpath(folder).value_or(folder);
  return host.realpath(interpreter).value_or(interpreter);
}

void list_others(const Host& host, const std::vector<PythonCandidate>& candidates, const std::string& chosen,
                 std::vector<Message>& notes) {
  std::set<std::string> seen{identity(host, chosen)};
  for (const PythonCandidate& candidate : candidates) {
    const auto found = find_interpreter(host, candidate.path);
    if (!found || !seen.insert(identity(host, found->path)).second) continue;
    const std::string torch = torch_of(host, found->path);
    if (torch.empty()) continue;
    notes.push_back(
        message("also has torch {}: {} ({})", printable(torch), printable(found->path), candidate.origin));
  }
}

// In a root nothing says which Python is the active one, so the first that holds torch is meant; without any,
// the first.
Result<std::string> choose_in_root(const Host& host, std::vector<Message>& notes) {
  std::vector<PythonCandidate> candidates = sources(host);
  for (PlacedPython& placed : pythons_in_root(host))
    candidates.push_back({std::move(placed.path), say("in {}", placed.origin), false});
  std::optional<std::pair<std::string, Message>> first, with_torch;
  for (const PythonCandidate& candidate : candidates) {
    const auto found = find_interpreter(host, candidate.path);
    if (!found) continue;
    if (!first) first = {found->path, chosen_line(*found, candidate.origin)};
    if (torch_of(host, found->path).empty()) continue;
    with_torch = {found->path,
                  chosen_line(*found, message("{}, the first one with torch", candidate.origin))};
    break;
  }
  const auto& chosen = with_torch ? with_torch : first;
  if (!chosen)
    return Error{Errc::InvalidArgument,
                 message("no Python found in the root: searched the directories of its PATH, /opt/*, "
                         "/opt/conda/envs/*, /venv, /app/.venv, /root/.venv and similar ones"),
                 message("give its path inside the root: --python /path/to/python")};
  notes.push_back(chosen->second);
  list_others(host, candidates, chosen->first, notes);
  return chosen->first;
}

// The Python that a candidate leads to; of an active environment only one that could really start.
Result<Interpreter> python_of(const Host& host, const PythonCandidate& candidate) {
  return candidate.active ? find_usable_interpreter(host, candidate.path)
                          : find_interpreter(host, candidate.path);
}

Error unusable_environment(const Host& host, const PythonCandidate& candidate, const Error& why,
                           BrokenEnvironment* broken) {
  BrokenEnvironment found = broken_environment(host, candidate.origin, candidate.path, why);
  Error error = error_of(found);
  if (broken != nullptr) *broken = std::move(found);
  return error;
}

Result<std::string> choose_requested(const Host& host, const std::string& requested,
                                     std::vector<Message>& notes) {
  auto found = find_usable_interpreter(host, requested);
  if (!found) return Error{Errc::InvalidArgument, found.error().message, found.error().hint};
  notes.push_back(chosen_line(*found, "--python"));
  return found->path;
}

}  // namespace

Result<std::string> choose_python(const Host& host, const std::optional<std::string>& requested,
                                  std::vector<Message>& notes, BrokenEnvironment* broken) {
  if (requested) return choose_requested(host, *requested, notes);
  if (!host.is_live()) return choose_in_root(host, notes);
  std::vector<PythonCandidate> candidates = sources(host);
  std::optional<std::string> chosen;
  for (const PythonCandidate& candidate : candidates) {
    const auto found = python_of(host, candidate);
    if (found) {
      notes.push_back(chosen_line(*found, candidate.origin));
      chosen = found->path;
      break;
    }
    // Going on to the next candidate would diagnose an environment that the user does not work in, and call
    // it healthy.
    if (candidate.active) return unusable_environment(host, candidate, found.error(), broken);
    notes.push_back(message("skipped {}: {}", candidate.origin, found.error().message));
  }
  if (!chosen)
    return Error{Errc::InvalidArgument,
                 message("no Python found: searched VIRTUAL_ENV, ./.venv, CONDA_PREFIX and PATH"),
                 message("choose one: --python PATH")};
  for (PythonCandidate& candidate : elsewhere(host)) candidates.push_back(std::move(candidate));
  list_others(host, candidates, *chosen, notes);
  return *chosen;
}

}  // namespace scankit::probes
