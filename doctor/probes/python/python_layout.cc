// SPDX-License-Identifier: Apache-2.0
// getpath step by step, from files: which series ("3.11") the executable belongs to, from where the landmark
// lib/pythonX.Y/os.py is searched, the prefixes that this gives, and at last the exact release. The real
// interpreter knows its series by itself; here it has to be inferred first, because the search needs it.
#include "doctor/probes/python/python_layout.h"

#include <algorithm>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/probes/python/python.h"
#include "doctor/probes/python/python_text.h"

namespace scankit {
namespace {

// "3.13t": major 3, minor 13, thread "t".
struct Series {
  unsigned major = 0, minor = 0;
  std::string thread;
  bool operator==(const Series&) const = default;
};

// "python3.11", "python3.13t", "python3.7m" -> the series; `rest` may not be anything else.
std::optional<Series> series_of(std::string_view name) {
  constexpr std::string_view kPython = "python";
  if (!name.starts_with(kPython)) return std::nullopt;
  name.remove_prefix(kPython.size());
  Series series;
  std::size_t at = 0;
  const auto number = [&](unsigned& value) {
    const std::size_t from = at;
    for (; at < name.size() && name[at] >= '0' && name[at] <= '9' && at - from < 3; ++at)
      value = value * 10 + static_cast<unsigned>(name[at] - '0');
    return at > from;
  };
  if (!number(series.major) || at >= name.size() || name[at] != '.') return std::nullopt;
  ++at;
  if (!number(series.minor)) return std::nullopt;
  for (; at < name.size(); ++at) {
    if (name[at] == 't') series.thread = "t";
    if (name[at] != 't' && name[at] != 'm' && name[at] != 'd') return std::nullopt;
  }
  return series;
}

// Every folder from `start` upwards but "/" itself, at which getpath's search ends: else /bin/python3 of a
// merged /usr would find its standard library in /lib.
std::vector<std::string> upwards(std::string start) {
  std::vector<std::string> folders;
  for (; start != "/" && start != "." && folders.size() < 64; start = path_dirname(start))
    folders.push_back(start);
  return folders;
}

// getpath's STDLIB_LANDMARKS: os.py, or os.pyc in an installation without sources.
bool has_landmark(const Host& host, const std::string& prefix, const std::string& library,
                  const Series& series) {
  const std::string folder =
      path_join(path_join(prefix, library),
                "python" + std::to_string(series.major) + "." + std::to_string(series.minor) + series.thread);
  return is_regular_file(host, folder + "/os.py") || is_regular_file(host, folder + "/os.pyc");
}

// Series whose standard library can be reached from `start`, nearest first.
std::vector<Series> installed_series(const Host& host, const std::string& start) {
  std::vector<Series> found;
  for (const std::string& prefix : upwards(start))
    for (const char* library : {"lib", "lib64"}) {
      const auto entries = host.list(path_join(prefix, library));
      if (!entries) continue;
      for (const DirEntry& entry : *entries) {
        const auto series = series_of(entry.name);
        const bool is_new = series && std::ranges::find(found, *series) == found.end();
        if (is_new && has_landmark(host, prefix, library, *series)) found.push_back(*series);
      }
    }
  return found;
}

// A file called just "python" (conda, a venv of copies) tells its series by what is around it: the only
// standard library in reach, else the one whose release number is among the strings of the binary, else the
// one that pyvenv.cfg names. Where none of that helps, the nearest.
std::optional<Series> find_series(const Host& host, const PythonLayout& layout, const std::string& start) {
  for (const std::string& file : {layout.executable, layout.interpreter})
    if (auto series = series_of(path_basename(file))) return series;
  const std::vector<Series> installed = installed_series(host, start);
  if (installed.size() == 1) return installed.front();
  for (const Series& series : installed) {
    const std::string name = std::to_string(series.major) + "." + std::to_string(series.minor);
    if (!release_strings(host, layout.executable, name).empty()) return series;
    if (layout.venv && (layout.venv->version + ".").starts_with(name + ".")) return series;
  }
  return installed.empty() ? std::nullopt : std::optional(installed.front());
}

// Where getpath begins to look for the landmarks. `minor` is 0 as long as the series is not known: this is
// called once to find the series, and again with it.
std::string search_start(const PythonLayout& layout) {
  const bool link = layout.executable != layout.interpreter;
  // 3.11 and newer go by pyvenv.cfg's home alone; before, home counts for a venv of copies only.
  if (layout.venv && !layout.venv->home.empty() && (!link || layout.minor >= 11 || layout.minor == 0))
    return layout.venv->home;
  return path_dirname(layout.executable);
}

bool take_prefix(const Host& host, const std::string& prefix, PythonLayout& layout) {
  for (const char* library : {"lib", "lib64"}) {
    if (!has_landmark(host, prefix, library, {layout.major, layout.minor, layout.thread})) continue;
    layout.base_prefix = prefix;
    layout.library_folder = library;
    return true;
  }
  return false;
}

// Upwards from pyvenv.cfg's home or the executable, then the compiled-in prefix. PYTHONHOME overrides both
// results: "PREFIX", or "PREFIX:EXEC_PREFIX". base_prefix stays "" where nothing was found.
void find_prefixes(const Host& host, PythonLayout& layout) {
  std::vector<std::string> candidates = upwards(search_start(layout));
  for (const std::string& prefix : upwards(path_dirname(layout.executable))) candidates.push_back(prefix);
  bool found = std::ranges::any_of(
      candidates, [&](const std::string& prefix) { return take_prefix(host, prefix, layout); });
  // getpath's last resort, the prefix that the build was configured for, stands in the binary.
  for (const char* prefix : {"/usr/local", "/usr"})
    found = found || (holds_string(host, layout.executable, prefix) && take_prefix(host, prefix, layout));
  const std::string folder = layout.library_folder + "/python" + layout.tag();
  layout.exec_prefix = layout.base_prefix;
  for (const std::string& prefix : candidates) {
    if (!host.is_directory(path_join(prefix, folder + "/lib-dynload"))) continue;
    layout.exec_prefix = prefix;
    break;
  }
  if (const auto home = host.env("PYTHONHOME"); home && !home->empty()) {
    const auto colon = home->find(':');
    layout.base_prefix = home->substr(0, colon);
    layout.exec_prefix = colon == std::string::npos ? layout.base_prefix : home->substr(colon + 1);
    layout.library_folder = "lib";
    take_prefix(host, std::string(layout.base_prefix), layout);
  }
  layout.stdlib = path_join(layout.base_prefix, layout.library_folder + "/python" + layout.tag());
  layout.dynload =
      path_join(layout.exec_prefix, layout.library_folder + "/python" + layout.tag() + "/lib-dynload");
}

// `#define PY_VERSION "3.11.7"`: installed with every build but Debian's runtime packages.
std::string release_of_headers(const Host& host, const PythonLayout& layout, std::string& source) {
  for (const std::string& suffix : {layout.thread, layout.thread + "m"}) {
    source = path_join(layout.base_prefix, "include/python" + layout.series() + suffix + "/patchlevel.h");
    const auto text = host.read_file(source, 1u << 16);
    if (!text) continue;
    constexpr std::string_view kDefine = "#define PY_VERSION";
    auto at = text->find(kDefine);
    if (at != std::string::npos) at = text->find('"', at + kDefine.size());
    if (at == std::string::npos) continue;
    if (auto literal = python_string_literal(*text, at)) return *literal;
  }
  return {};
}

// "conda-meta/python-3.11.6-hab00c5b_0_cpython.json" -> "3.11.6".
std::string release_of_conda(const Host& host, const PythonLayout& layout, std::string& source) {
  const auto entries = host.list(path_join(layout.base_prefix, "conda-meta"));
  if (!entries) return {};
  const std::string start = "python-" + layout.series() + ".";
  for (const DirEntry& entry : *entries) {
    if (!entry.name.starts_with(start) || !entry.name.ends_with(".json")) continue;
    source = path_join(layout.base_prefix, "conda-meta/" + entry.name);
    return entry.name.substr(7, entry.name.find('-', 7) - 7);
  }
  return {};
}

// The executable and the libpython that it would load. Another
// folder's libpython may be of another patch release.
std::vector<std::string> libraries_of(const Host& host, const PythonLayout& layout) {
  std::vector<std::string> folders{layout.base_prefix + "/" + layout.library_folder};
  if (layout.base_prefix == "/usr") folders.push_back("/usr/lib/" + layout.machine + "-linux-gnu");
  std::vector<std::string> files{layout.executable};
  for (const std::string& folder : folders)
    for (const std::string& suffix : {layout.thread, layout.thread + "m"}) {
      const std::string file = folder + "/libpython" + layout.series() + suffix + ".so.1.0";
      if (is_regular_file(host, file)) files.push_back(file);
    }
  return files;
}

// patchlevel.h, conda's record, then the strings of the binary. A file with two release numbers of the
// series proves neither of them. At worst, the release is the series alone.
void find_release(const Host& host, PythonLayout& layout) {
  layout.release = release_of_headers(host, layout, layout.release_source);
  if (layout.release.empty()) layout.release = release_of_conda(host, layout, layout.release_source);
  if (!layout.release.empty()) return;
  for (const std::string& file : libraries_of(host, layout)) {
    const auto releases = release_strings(host, file, layout.series());
    if (releases.size() != 1) continue;
    layout.release = releases.front();
    layout.release_source = file;
    return;
  }
  // Last: it says what the venv was made with, which an upgrade of the base does not change.
  const bool told = layout.venv && layout.venv->version.starts_with(layout.series() + ".");
  layout.release = told ? layout.venv->version : layout.series();
  layout.release_source = told ? layout.venv->file : layout.stdlib;
}

}  // namespace

Result<PythonLayout> read_python_layout(const Host& host, const std::string& interpreter) {
  PythonLayout layout;
  layout.interpreter = interpreter;
  SCANKIT_TRY(layout.executable, host.realpath(interpreter));
  SCANKIT_TRY(const PythonBinary binary, read_python_binary(host, layout.executable));
  layout.machine = binary.machine;
  SCANKIT_TRY(layout.venv, read_venv_config(host, interpreter));
  const auto series = find_series(host, layout, search_start(layout));
  if (!series)
    return Error{Errc::NotFound,
                 say("the interpreter {} has no standard library: lib/python3.*/os.py found neither in {} "
                     "nor above it",
                     printable(interpreter), printable(search_start(layout))),
                 say("its installation is incomplete or was moved: reinstall that Python")};
  layout.major = series->major;
  layout.minor = series->minor;
  layout.thread = series->thread;
  find_prefixes(host, layout);
  if (!host.is_directory(layout.stdlib))
    return Error{Errc::NotFound,
                 layout.base_prefix.empty()
                     ? say("the interpreter {} has no standard library: lib/python{} not found above it",
                           printable(interpreter), layout.tag())
                     : say("the interpreter {} has no standard library: {} not found", printable(interpreter),
                           printable(layout.stdlib)),
                 say("its installation is incomplete or was moved: reinstall that Python")};
  find_release(host, layout);
  layout.site_source = host.read_file(path_join(layout.stdlib, "site.py"), 1u << 20).value_or("");
  return layout;
}

}  // namespace scankit
