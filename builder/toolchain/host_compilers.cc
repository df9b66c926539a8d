// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <sstream>

#include "builder/toolchain/toolchain.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/version.h"
#include "doctor/preflight/probes/sources.h"
#include "doctor/probes/machine/system.h"
#include "doctor/probes/python/python.h"

namespace scankit::toolchain {
namespace {

// Majors, as in HostCompilerRange.
struct Row {
  const char* release;
  unsigned gcc_max, clang_min, clang_max;
};
// What crt/host_config.h of that release refuses, read in the files of the wheels nvidia-cuda-nvcc-cu11,
// nvidia-cuda-nvcc-cu12 and nvidia-cuda-crt.
constexpr Row kRows[] = {
    {"11.7", 11, 3, 13}, {"11.8", 11, 3, 14}, {"12.0", 12, 3, 14}, {"12.1", 12, 3, 15}, {"12.2", 12, 3, 16},
    {"12.3", 12, 3, 16}, {"12.4", 13, 3, 17}, {"12.5", 13, 3, 17}, {"12.6", 13, 3, 18}, {"12.8", 14, 3, 19},
    {"12.9", 14, 3, 19}, {"13.0", 15, 3, 20}, {"13.1", 15, 3, 21}, {"13.2", 15, 3, 21}, {"13.3", 15, 3, 21},
    {"13.4", 16, 3, 21}, {"13.5", 16, 3, 21},
};

// "g++", "g++-12", "clang++", "clang++-17", "x86_64-conda-linux-gnu-g++"
bool is_compiler_name(const std::string& name) {
  for (const std::string stem : {"clang++", "g++"}) {
    const auto at = name.find(stem);
    if (at == std::string::npos || (stem == "g++" && name.find("clang") != std::string::npos)) continue;
    const std::string before = name.substr(0, at), rest = name.substr(at + stem.size());
    const bool number =
        rest.size() > 1 && rest[0] == '-' && rest.find_first_not_of("0123456789.", 1) == std::string::npos;
    return (before.empty() || before == "x86_64-conda-linux-gnu-") && (rest.empty() || number);
  }
  return false;
}

// Plain names come first, since they are what the user has chosen as the default; then the newest version. A
// longer name has a longer number: "g++-12" comes before "g++-9".
bool comes_first(const std::string& a, const std::string& b) {
  const auto rank = [](const std::string& name) {
    return std::pair(name.find("++-") != std::string::npos ? 1 : 0, name.starts_with("clang") ? 1 : 0);
  };
  if (rank(a) != rank(b)) return rank(a) < rank(b);
  return a.size() != b.size() ? a.size() > b.size() : a > b;
}

unsigned compiler_major(const Compiler& compiler) {
  const auto version = Version::parse(compiler.version);
  return version ? version->part(0) : 0;
}

// A compiler of unknown version is out of every range; a range that is not known admits all others.
bool in_range(const Compiler& compiler, const HostCompilerRange& range) {
  const unsigned major = compiler_major(compiler);
  if (major == 0) return false;
  if (compiler.kind == "gcc") return range.gcc_max == 0 || major <= range.gcc_max;
  return range.clang_max == 0 || (major >= range.clang_min && major <= range.clang_max);
}

}  // namespace

std::string shown(const HostCompilerRange& range) {
  if (range.gcc_max != 0 && range.clang_max != 0)
    return say("gcc up to {}, clang {} to {}", range.gcc_max, range.clang_min, range.clang_max);
  if (range.gcc_max != 0) return say("gcc up to {}", range.gcc_max);
  return say("unknown");
}

HostCompilerRange host_compiler_range(const Host& host, const std::vector<std::string>& include_folders,
                                      const std::string& release) {
  constexpr std::size_t kLimit = 1u << 20;
  for (const std::string& folder : include_folders) {
    const std::string path = folder + "/crt/host_config.h";
    const auto text = host.read_file(path, kLimit);
    if (!text) continue;
    BuildTools tools;
    preflight::read_limits(*text, tools);
    if (tools.gcc_max != 0) return {tools.gcc_max, tools.clang_min, tools.clang_max, path};
  }
  for (const Row& row : kRows)
    if (release == row.release)
      return {row.gcc_max, row.clang_min, row.clang_max, say("what CUDA {} is known to support", release)};
  return {};
}

std::vector<Compiler> find_host_compilers(const Host& host) {
  std::vector<std::string> candidates;
  for (const char* name : {"NVCC_CCBIN", "CUDAHOSTCXX", "CXX"})
    if (const auto value = host.env(name); value && value->starts_with('/')) candidates.push_back(*value);
  std::istringstream folders(host.env("PATH").value_or("/usr/local/bin:/usr/bin"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::vector<std::string> names;
    if (const auto entries = host.list(folder))
      for (const DirEntry& entry : *entries)
        if (is_compiler_name(entry.name)) names.push_back(entry.name);
    std::sort(names.begin(), names.end(), comes_first);
    for (const std::string& name : names) candidates.push_back(path_join(folder, name));
  }
  std::vector<Compiler> compilers;
  std::set<std::string> seen;
  for (const std::string& path : candidates) {
    const auto real = host.realpath(path);
    // A launcher (ccache's links) is not the compiler itself, and root starts nobody else's.
    if (!real || !host.is_program(*real) || path_basename(*real).find("cache") != std::string::npos ||
        probes::foreign_to_root(host, *real) || !seen.insert(*real).second)
      continue;
    compilers.push_back(probes::describe_compiler(host, path));
  }
  return compilers;
}

Result<Compiler> choose_host_compiler(const std::vector<Compiler>& compilers, const HostCompilerRange& range,
                                      const std::string& release) {
  std::string here;
  for (const Compiler& compiler : compilers) {
    if (in_range(compiler, range)) return compiler;
    here += (here.empty() ? "" : ", ") + compiler.kind + " " + compiler.version;
  }
  const std::string fix =
      range.gcc_max != 0
          ? say("install g++-{} or an older one, or choose one with CUDAHOSTCXX; NVRTC needs no compiler",
                range.gcc_max)
          : say("install g++; NVRTC needs no compiler");
  if (here.empty())
    return Error{Errc::NotFound, message("nvcc needs a C++ compiler, and PATH contains none"), fix};
  return Error{Errc::Unsupported, message("nvcc {} supports {}, but found {}", release, shown(range), here),
               fix};
}

}  // namespace scankit::toolchain
