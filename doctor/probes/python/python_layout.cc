// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/python/python_layout.h"

#include <algorithm>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/probes/python/python.h"
#include "doctor/probes/python/python_text.h"

namespace scankit::probes {
namespace {

// As site.py does: keys in any case, blanks around both parts removed, and the last line of a key wins. A
// line without "=" is ignored.
void read_line(std::string_view line, VenvConfig& config) {
  const auto equals = line.find('=');
  if (equals == std::string_view::npos) return;
  const std::string key = lowered(trimmed(line.substr(0, equals)));
  const std::string value(trimmed(line.substr(equals + 1)));
  if (key == "home") config.home = value;
  if (key == "include-system-site-packages") config.system_site = lowered(value) == "true";
  if (key == "version" || key == "version_info") config.version = value;  // venv and uv; virtualenv
  if (key == "uv") config.made_by_uv = true;
}

// The value of a key in the literal dict of _sysconfigdata*.py, which pprint writes with one key a line;
// numbers come as their digits. A string that pprint breaks into several literals gives the first only,
// which no key asked for here is long enough for. "" where the key is missing.
std::string build_variable(std::string_view text, std::string_view key) {
  const std::string start = "'" + std::string(key) + "':";
  auto at = text.find(start);
  if (at == std::string_view::npos) return {};
  at = text.find_first_not_of(" \n", at + start.size());
  if (at == std::string_view::npos) return {};
  if (auto literal = python_string_literal(text, at)) return *literal;
  const auto end = text.find_first_of(",}\n", at);
  return std::string(trimmed(text.substr(at, end == std::string_view::npos ? end : end - at)));
}

// sys.abiflags stands between the first underscores: _sysconfigdata_t_linux_x86_64-linux-gnu.py. Debian and
// conda put further files of other names beside the one that the interpreter imports.
std::string sysconfigdata_file(const Host& host, const std::string& stdlib, bool free_threaded) {
  const auto entries = host.list(stdlib);
  if (!entries) return {};
  const std::string exact = free_threaded ? "_sysconfigdata_t_linux" : "_sysconfigdata__linux";
  std::string chosen;
  for (const DirEntry& entry : *entries) {
    if (!entry.name.starts_with("_sysconfigdata_") || !entry.name.ends_with(".py")) continue;
    if (entry.name.starts_with(exact)) return path_join(stdlib, entry.name);
    if (chosen.empty()) chosen = path_join(stdlib, entry.name);
  }
  return chosen;
}

// "_bisect.cpython-311-x86_64-linux-gnu.so" -> "cpython-311-x86_64-linux-gnu": the modules of the standard
// library carry the tag of the build that they belong to.
std::string soabi_of_dynload(const Host& host, const std::string& dynload) {
  const auto entries = host.list(dynload);
  if (!entries) return {};
  for (const DirEntry& entry : *entries) {
    const auto tag = entry.name.find(".cpython-");
    if (tag == std::string::npos || !entry.name.ends_with(".so")) continue;
    return entry.name.substr(tag + 1, entry.name.size() - tag - 4);
  }
  return {};
}

}  // namespace

Result<std::optional<VenvConfig>> read_venv_config(const Host& host, const std::string& interpreter) {
  const std::string directory = path_dirname(interpreter);
  // The order of site.py and getpath: in the directory of the executable, then one above. The first file is
  // taken, even where it is unusable.
  for (const std::string& folder : {directory, path_dirname(directory)}) {
    const std::string file = path_join(folder, "pyvenv.cfg");
    if (!is_regular_file(host, file)) continue;
    const auto text = host.read_file(file, 1u << 20);
    if (!text)
      return Error{text.error().code,
                   message("the venv's configuration cannot be read: {}", text.error().message),
                   message("grant yourself read permission, or recreate the venv")};
    if (!is_utf8(*text))
      return Error{Errc::Malformed,
                   message("{} is not UTF-8 text, so this venv's interpreter fails at startup", file),
                   message("recreate the venv")};
    VenvConfig config;
    config.file = file;
    config.prefix = path_dirname(directory);  // site.py: the folder above bin, wherever the file lies
    for (const std::string_view line : lines_of(*text)) read_line(line, config);
    return std::optional(std::move(config));
  }
  return std::optional<VenvConfig>();
}

// Three witnesses, the best first: _sysconfigdata, the file names in lib-dynload, and the rule by which
// CPython forms the tag. A build that is stripped down to the last still gets suffixes.
BuildConfig read_build_config(const Host& host, const std::string& stdlib, const std::string& dynload,
                              const std::string& tag, const std::string& machine) {
  BuildConfig config;
  config.free_threaded = tag.ends_with('t');
  config.source = sysconfigdata_file(host, stdlib, config.free_threaded);
  if (!config.source.empty()) {
    if (const auto text = host.read_file(config.source, 4u << 20)) {
      config.soabi = build_variable(*text, "SOABI");
      config.alt_soabi = build_variable(*text, "ALT_SOABI");
      // A macro that pyconfig.h leaves undefined is 0 in the dict.
      if (config.alt_soabi == "0") config.alt_soabi.clear();
      config.free_threaded = config.free_threaded || build_variable(*text, "Py_GIL_DISABLED") == "1";
    }
  }
  if (config.soabi.empty()) {
    config.source = dynload;
    config.soabi = soabi_of_dynload(host, dynload);
  }
  if (config.soabi.empty() && !machine.empty()) {
    config.source = "the rule for version and machine";
    std::string digits = tag;
    std::erase(digits, '.');
    config.soabi = "cpython-" + digits + "-" + machine + "-linux-gnu";
  }
  return config;
}

std::string platform_of_tag(const std::string& soabi) {
  const auto platform = soabi.find('-', soabi.find('-') + 1);
  return platform == std::string::npos ? "" : soabi.substr(platform);
}

std::vector<std::string> extension_suffixes(const BuildConfig& config, unsigned minor,
                                            StableAbiSuffixes stable) {
  std::vector<std::string> suffixes;
  if (!config.soabi.empty()) suffixes.push_back("." + config.soabi + ".so");
  if (!config.alt_soabi.empty()) suffixes.push_back("." + config.alt_soabi + ".so");
  // 3.15 also reads stable-ABI files that name the platform.
  const std::string triplet = platform_of_tag(config.soabi);
  // .abi3t, the stable ABI of free-threaded builds, is new in 3.15.
  for (const std::string family : {".abi3", ".abi3t"}) {
    if (family == ".abi3" ? !stable.plain : minor < 15) continue;
    if (minor >= 15 && !triplet.empty()) suffixes.push_back(family + triplet + ".so");
    suffixes.push_back(family + ".so");
    if (minor < 15 && stable.platform && !triplet.empty()) suffixes.push_back(family + triplet + ".so");
  }
  suffixes.emplace_back(".so");
  return suffixes;
}

// getpath step by step, from files: which series ("3.11") the executable belongs to, from where the landmark
// lib/pythonX.Y/os.py is searched, the prefixes that this gives, and at last the exact release. The real
// interpreter knows its series by itself; here it has to be inferred first, because the search needs it.

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

// A free-threaded Python also installs its program as python3.14, without the "t" of its standard library.
// Where the libraries of both kinds are in reach, the suffix in the binary decides.
Series with_its_thread(const Host& host, const PythonLayout& layout, Series named, const std::string& start) {
  if (!named.thread.empty() || named.major != 3 || named.minor < 13) return named;
  Series threaded = named;
  threaded.thread = "t";
  const std::vector<Series> installed = installed_series(host, start);
  if (std::ranges::find(installed, threaded) == installed.end()) return named;
  const std::string suffix =
      ".cpython-3" + std::to_string(named.minor) + "t-" + layout.machine + "-linux-gnu.so";
  const bool alone = std::ranges::find(installed, named) == installed.end();
  return alone || holds_string(host, layout.executable, suffix) ? threaded : named;
}

// A file called just "python" (conda, a venv of copies) tells its series by what is around it: the only
// standard library in reach, else the one whose release number is among the strings of the binary, else the
// one that pyvenv.cfg names. Where none of that helps, the nearest.
std::optional<Series> find_series(const Host& host, const PythonLayout& layout, const std::string& start) {
  for (const std::string& file : {layout.executable, layout.interpreter})
    if (auto series = series_of(path_basename(file))) return with_its_thread(host, layout, *series, start);
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
    return Error{
        Errc::NotFound,
        message("the interpreter {} has no standard library: lib/python3.*/os.py found neither in {} "
                "nor above it",
                printable(interpreter), printable(search_start(layout))),
        message("its installation is incomplete or was moved: reinstall that Python")};
  layout.major = series->major;
  layout.minor = series->minor;
  layout.thread = series->thread;
  find_prefixes(host, layout);
  if (!host.is_directory(layout.stdlib))
    return Error{Errc::NotFound,
                 layout.base_prefix.empty()
                     ? message("the interpreter {} has no standard library: lib/python{} not found above it",
                               printable(interpreter), layout.tag())
                     : message("the interpreter {} has no standard library: {} not found",
                               printable(interpreter), printable(layout.stdlib)),
                 message("its installation is incomplete or was moved: reinstall that Python")};
  find_release(host, layout);
  layout.site_source = host.read_file(path_join(layout.stdlib, "site.py"), 1u << 20).value_or("");
  return layout;
}

}  // namespace scankit::probes
