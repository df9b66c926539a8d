// SPDX-License-Identifier: Apache-2.0
// Which Python and which installer an environment is made with: those that the user has. Nothing is downloaded;
// the only program that is run is `uv python find`, because only uv knows all of its own Pythons.
#include <algorithm>
#include <set>
#include <sstream>

#include "builder/installer/installer.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/probes/python/python.h"
#include "doctor/probes/python/sys_path.h"
#include "envspec/create/create.h"
#include "envspec/index/index.h"

namespace scankit::envspec {
namespace {

constexpr unsigned kOldestMinor = 8, kNewestMinor = 16;  // of CPython 3 whose names are tried on PATH

struct PythonCandidate {
  std::string program, found_by;
};

std::string minor_series(const std::string& version) {
  const auto parsed = Version::parse(version);
  return parsed ? parsed->major_minor() : version;
}

std::string uv_program(const Host& host) {
  const installer::Installer any = installer::downloader_of(host, Snapshot());
  return any.kind == installer::Installer::Kind::Uv ? any.program[0] : "";
}

bool is_free_threaded(const PythonWish& wish) { return wish.soabi.find("t-") != std::string::npos; }

// "3.14t" as the program of a free-threaded Python and uv have it; "3.14".
std::string named_series(const PythonWish& wish) {
  return minor_series(wish.version) + (is_free_threaded(wish) ? "t" : "");
}

// uv's answer for one version, "" where it has none. --system: an active environment is not meant.
std::string uv_python(const std::string& uv, const std::string& version) {
  ProcessRequest request;
  request.argv = {uv, "python", "find", "--system", "--no-python-downloads", "--no-project", version};
  const auto result = run_process(request);
  return result && result->ok() ? std::string(trimmed(result->out)) : "";
}

// Every VERSIONS/NAME/bin/python, the newest name last: pyenv and uv keep one directory for each version.
void add_versions(const Host& host, const std::string& folder, const std::string& found_by,
                  std::vector<PythonCandidate>& all) {
  const auto entries = host.list(folder);
  if (!entries) return;
  for (const DirEntry& entry : *entries)
    for (const char* name : {"/bin/python3", "/bin/python"})
      if (const std::string program = path_join(folder, entry.name) + name; host.is_program(program)) {
        all.push_back({program, found_by});
        break;
      }
}

std::vector<PythonCandidate> candidates(const Host& host, const PythonWish& wish) {
  std::vector<PythonCandidate> all;
  const std::string home = host.env("HOME").value_or("");
  const std::string series = wish.version.empty() ? "" : named_series(wish);
  if (const std::string uv = uv_program(host); !uv.empty() && !wish.version.empty())
    for (const std::string& version : {wish.version + (is_free_threaded(wish) ? "t" : ""), series})
      if (const std::string found = uv_python(uv, version); !found.empty())
        all.push_back({found, "uv python find"});
  const std::string data = host.env("XDG_DATA_HOME").value_or(path_join(home, ".local/share"));
  add_versions(host, host.env("UV_PYTHON_INSTALL_DIR").value_or(path_join(data, "uv/python")), "uv", all);
  add_versions(host, path_join(host.env("PYENV_ROOT").value_or(path_join(home, ".pyenv")), "versions"),
               "pyenv", all);
  std::vector<std::string> names;
  if (!series.empty()) names.push_back("python" + series);
  for (unsigned minor = kNewestMinor; wish.version.empty() && minor >= kOldestMinor; --minor)
    names.push_back("python3." + std::to_string(minor));
  names.insert(names.end(), {"python3", "python"});
  std::istringstream folders(host.env("PATH").value_or(""));
  for (std::string folder; std::getline(folders, folder, ':');)
    for (const std::string& name : names)
      if (const std::string path = path_join(folder, name); folder.starts_with('/') && host.is_program(path))
        all.push_back({path, "PATH"});
  return all;
}

// An environment is made from the installation below a venv: a venv of a venv breaks with the first one.
std::string installation_of(const Host& host, const Python& python) {
  if (python.prefix == python.base_prefix) return python.executable;
  const std::string program = python.base_prefix + "/bin/python" + minor_series(python.version);
  return host.is_program(program) ? program : python.executable;
}

std::string described(const PythonWish& wish) {
  if (wish.version.empty()) return wish.range.empty() ? say("Python 3") : say("Python {}", wish.range.text());
  return is_free_threaded(wish) ? say("Python {} (free-threaded)", minor_series(wish.version))
                                : say("Python {}", minor_series(wish.version));
}

// What may keep it from being used although its version is right: "3.11.7 (conda)".
std::string with_its_kind(const Python& python) {
  std::vector<std::string> kinds;
  if (python.kind == "conda") kinds.emplace_back("conda");
  if (python.free_threaded) kinds.push_back(say("free-threaded"));
  if (python.implementation != "cpython") kinds.push_back(python.implementation);
  return kinds.empty() ? python.version : fmt::format("{} ({})", python.version, join(kinds));
}

Error no_python(const PythonWish& wish, const std::set<std::string>& seen) {
  const std::string series = wish.version.empty() ? "VERSION" : named_series(wish);
  return {Errc::NotFound,
          seen.empty() ? message("{} is needed, and no Python was found", described(wish))
                       : message("{} is needed, and only {} was found", described(wish),
                                 join({seen.begin(), seen.end()})),
          message("uv python install {} gets it; --python PATH names one that is somewhere else, or conda's",
                  series)};
}

Result<BasePython> asked_python(const Host& host, const PythonWish& wish) {
  std::vector<Message> notes;
  SCANKIT_TRY(const std::string chosen, probes::choose_python(host, wish.asked, notes));
  const auto python = probes::probe_python(host, chosen);
  if (!python.present()) return Error{Errc::InvalidArgument, message("{}: {}", chosen, python.note), ""};
  if (!fits(python.value, wish))
    return Error{Errc::InvalidArgument,
                 message("--python {} is {} {}, but {} is needed", wish.asked, python.value.implementation,
                         python.value.version, described(wish)),
                 message("leave out --python, and scankit looks for one")};
  return with_facts(installation_of(host, python.value), "--python");
}

}  // namespace

Result<BasePython> with_facts(const std::string& program, std::string found_by) {
  SubjectOptions options;
  options.python = program;
  BasePython base;
  base.program = program;
  base.found_by = std::move(found_by);
  SCANKIT_TRY(base.subject, look_at(options));
  if (!base.subject.snapshot.python.present())
    return Error{Errc::NotFound, message("{}: {}", program, why_missing(base.subject.snapshot.python)), ""};
  return base;
}

PythonWish wish_of(const EnvironmentLock& lock) {
  PythonWish wish;
  wish.version = lock.python.version;
  wish.implementation = lock.python.implementation;
  wish.soabi = lock.python.soabi;
  return wish;
}

bool fits(const Python& python, const PythonWish& wish) {
  if (!wish.implementation.empty() && python.implementation != wish.implementation) return false;
  if (!wish.soabi.empty() && !python.soabi.empty() && python.soabi != wish.soabi) return false;
  if (!wish.version.empty()) return minor_series(python.version) == minor_series(wish.version);
  return wish.range.contains(std::string_view(python.version)).value_or(false);
}

// conda's Pythons are left out unless they are named: the new environment would lean on one that conda may
// change at any time.
Result<BasePython> find_base_python(const Host& host, const PythonWish& wish) {
  if (!wish.asked.empty()) return asked_python(host, wish);
  std::set<std::string> tried, seen;
  PythonCandidate best;
  std::string best_version;
  for (const PythonCandidate& one : candidates(host, wish)) {
    const auto python = probes::probe_python(host, one.program);
    if (!python.present()) continue;
    const std::string program = installation_of(host, python.value);
    if (!tried.insert(program).second) continue;
    seen.insert(with_its_kind(python.value));
    if (!fits(python.value, wish) || python.value.kind == "conda") continue;
    const auto version = Version::parse(python.value.version), before = Version::parse(best_version);
    // For a lock the first one, or the one of exactly that version; for a spec the newest.
    const bool better =
        best.program.empty() ||
        (wish.version.empty() ? version && before && *before < *version
                              : python.value.version == wish.version && best_version != wish.version);
    if (!better) continue;
    best = {program, one.found_by};
    best_version = python.value.version;
  }
  if (best.program.empty()) return no_python(wish, seen);
  return with_facts(best.program, best.found_by);
}

Result<EnvInstaller> find_env_installer(const Host& host, const Snapshot& base, const std::string& wanted) {
  const Python& python = base.python.value;
  const std::string uv = wanted == "pip" ? "" : uv_program(host);
  if (wanted == "uv" && uv.empty())
    return Error{Errc::NotFound, message("uv was not found"),
                 message("put uv on PATH, or leave out --installer")};
  if (wanted == "uv") return EnvInstaller{installer::Installer::Kind::Uv, uv, say("--installer")};
  const bool pip_knows_the_index = installer::pip_has_its_own_index(host, python);
  if (!uv.empty() && !pip_knows_the_index)
    return EnvInstaller{installer::Installer::Kind::Uv, uv, say("uv is available")};
  if (const auto pip = probes::find_python_module(host, python, "pip"))
    return EnvInstaller{installer::Installer::Kind::Pip, pip->path, say("{} has pip", python.executable)};
  if (probes::find_python_module(host, python, "ensurepip"))
    return EnvInstaller{installer::Installer::Kind::Pip, "", say("{} includes pip", python.executable)};
  if (!uv.empty()) return EnvInstaller{installer::Installer::Kind::Uv, uv, say("uv is available")};
  return Error{Errc::NotFound,
               message("neither uv nor pip was found, and {} has no ensurepip", python.executable),
               message("put uv on PATH, or install pip (Debian and Ubuntu: apt install python3-venv)")};
}

}  // namespace scankit::envspec
