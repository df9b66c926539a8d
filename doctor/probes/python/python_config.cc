// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/python/python_config.h"

#include <algorithm>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/probes/python/python_text.h"

namespace scankit {
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
                   say("the venv's configuration cannot be read: {}", text.error().message),
                   say("grant yourself read permission, or recreate the venv")};
    if (!is_utf8(*text))
      return Error{Errc::Malformed,
                   say("{} is not UTF-8 text, so this venv's interpreter fails at startup", file),
                   say("recreate the venv")};
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

}  // namespace scankit
