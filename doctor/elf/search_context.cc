// SPDX-License-Identifier: Apache-2.0
#include <elf.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "doctor/base/files.h"
#include "doctor/elf/search.h"

namespace scankit {
namespace {

std::vector<std::string> split(const std::string& text, std::string_view separators) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  while (at <= text.size()) {
    const auto end = std::min(text.find_first_of(separators, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// The loader holds its default folders as strings in a row, each with a '/' at its end: "/lib64/",
// "/usr/lib64/". Distributions choose them when glibc is built, so the file is the only one that knows.
std::vector<std::string> folders_in_loader(const std::string& loader) {
  std::vector<std::string> folders;
  for (auto at = loader.find("/usr/lib"); at != std::string::npos; at = loader.find("/usr/lib", at + 1)) {
    std::size_t first = at;
    while (first > 1 && loader[first - 1] == '\0') {  // back over the strings before it
      const auto before = loader.rfind('\0', first - 2);
      const std::size_t start = before == std::string::npos ? 0 : before + 1;
      if (start >= first - 1 || loader[start] != '/' || loader[first - 2] != '/') break;
      first = start;
    }
    std::vector<std::string> run;
    for (std::size_t i = first; i < loader.size() && loader[i] == '/' && run.size() < 16;) {
      const auto end = loader.find('\0', i);
      if (end == std::string::npos || end - i > 256 || loader[end - 1] != '/') break;
      run.push_back(loader.substr(i, end - i - 1));
      i = end + 1;
    }
    if (run.size() > folders.size()) folders = std::move(run);
  }
  return folders;
}

std::vector<std::string> default_folders(const Host& host, const SearchContext& context) {
  if (const auto loader = host.read_file(context.interpreter, 4u << 20)) {
    auto folders = folders_in_loader(*loader);
    if (!folders.empty()) return folders;
  }
  const std::string triplet = context.machine == EM_AARCH64 ? "aarch64-linux-gnu" : "x86_64-linux-gnu";
  if (host.is_directory("/usr/lib/" + triplet))
    return {"/lib/" + triplet, "/usr/lib/" + triplet, "/lib", "/usr/lib"};
  return {"/lib64", "/usr/lib64", "/lib", "/usr/lib"};
}

// x86-64 psABI, "micro-architecture levels", by the names of /proc/cpuinfo ("pni" is SSE3, "abm" LZCNT).
std::vector<std::string> hwcaps(const Host& host, std::uint16_t machine) {
  if (machine != EM_X86_64) return {};
  const auto cpuinfo = host.read_file("/proc/cpuinfo");
  if (!cpuinfo) return {};
  const auto line = cpuinfo->find("\nflags");
  if (line == std::string::npos) return {};
  std::istringstream words(cpuinfo->substr(line, cpuinfo->find('\n', line + 1) - line));
  std::set<std::string> have;
  for (std::string word; words >> word;) have.insert(word);
  const std::vector<std::pair<std::string, std::vector<std::string>>> levels = {
      {"x86-64-v2", {"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"}},
      {"x86-64-v3", {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}},
      {"x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}}};
  std::vector<std::string> found;
  for (const auto& [level, flags] : levels) {
    if (!std::ranges::all_of(flags, [&](const std::string& f) { return have.contains(f); })) break;
    found.insert(found.begin(), level);
  }
  return found;
}

}  // namespace

SearchContext make_search_context(const Host& host, const ElfLibrary& main_program,
                                  const std::string& main_path) {
  SearchContext context;
  context.interpreter = read_interpreter(main_program.image);
  context.machine = main_program.image.identity().machine;
  context.main_origin = path_dirname(host.realpath(main_path).value_or(main_path));
  context.default_folders = default_folders(host, context);
  context.hwcaps = hwcaps(host, context.machine);
  context.platform_token = machine_name(main_program.image.identity());
  const std::string& first = context.default_folders.front();
  const bool has_lib64 =
      std::ranges::find(context.default_folders, "/lib64") != context.default_folders.end();
  context.lib_token = has_lib64 ? "lib64" : first.substr(first.empty() ? 0 : 1);
  if (const auto path = host.env("LD_LIBRARY_PATH"); path && !path->empty()) {
    for (const std::string& part : split(*path, ":;")) {
      std::string folder = part.empty() ? host.env("PWD").value_or(".") : part;  // empty: the current folder
      folder = expand_tokens(folder, context.main_origin, context);
      while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
      context.library_path.push_back(std::move(folder));
    }
  }
  if (const auto preload = host.env("LD_PRELOAD"))
    for (const std::string& name : split(*preload, ": "))
      if (!name.empty()) context.preload.push_back(expand_tokens(name, context.main_origin, context));
  context.cache = LdCache::read(host, context.machine);
  return context;
}

}  // namespace scankit
