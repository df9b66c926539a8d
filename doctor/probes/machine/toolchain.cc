// SPDX-License-Identifier: Apache-2.0
// CUDA toolkits and host compilers that are installed, wherever they are. Which of them a build of extension
// sources would take is another question, which sources/build_tools.cc answers.
#include <algorithm>
#include <cctype>
#include <set>

#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/probes/machine/system.h"

namespace scankit {
namespace {

// `#define CUDA_VERSION 13000` of cuda.h: 1000 * major + 10 * minor (CUDA driver API, cuda.h). A header is
// quicker to read than nvcc is to start. Some installations have it below targets/ only.
std::string version_in_header(const Host& host, const std::string& root) {
  for (const char* header : {"/include/cuda.h", "/targets/x86_64-linux/include/cuda.h"}) {
    const auto text = host.read_file(root + header, 4u << 20);
    if (!text) continue;
    const std::string key = "#define CUDA_VERSION ";
    const auto at = text->find(key);
    if (at == std::string::npos) continue;
    const int number = std::atoi(text->c_str() + at + key.size());
    return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
  }
  return "";
}

// Candidates, which may repeat each other under several names: probe_toolkits() compares what nvcc links to.
std::vector<std::string> toolkit_roots(const Host& host) {
  std::vector<std::string> roots;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX"})
    if (const auto value = host.env(name); value && !value->empty()) roots.push_back(*value);
  for (const std::string& folder : split_nonempty(host.env("PATH").value_or(""), ":"))
    if (host.exists(folder + "/nvcc")) roots.push_back(path_dirname(folder));
  if (const auto entries = host.list("/usr/local"))
    for (const DirEntry& entry : *entries)
      if (entry.name == "cuda" || entry.name.starts_with("cuda-"))
        roots.push_back("/usr/local/" + entry.name);
  if (host.exists("/opt/cuda/bin/nvcc")) roots.emplace_back("/opt/cuda");
  return roots;
}

// The driver program's own answer. -dumpversion alone may give the major only (GCC's
// --with-gcc-major-version-only). Where gcc cannot be run, the suffix of a name like "g++-12" remains.
std::string gcc_version(const Host& host, const std::string& path) {
  if (host.is_live()) {
    ProcessRequest request;
    request.argv = {path, "-dumpfullversion", "-dumpversion"};
    request.timeout = std::chrono::milliseconds(3000);
    if (auto answer = run_process(request); answer && answer->ok())
      return answer->out.substr(0, answer->out.find('\n'));
  }
  const std::string real = path_basename(host.realpath(path).value_or(path));
  const auto dash = real.rfind('-');
  const std::string tail = dash == std::string::npos ? "" : real.substr(dash + 1);
  return !tail.empty() && std::isdigit(static_cast<unsigned char>(tail[0])) ? tail : "";
}

// clang's link leads to ".../llvm-14/bin/clang"; starting it
// costs 30 ms, and nothing needs more than the major.
std::string clang_version(const Host& host, const std::string& path) {
  const std::string real = host.realpath(path).value_or("");
  for (const char* marker : {"llvm-", "clang-"}) {
    const auto at = real.find(marker);
    if (at == std::string::npos) continue;
    const std::string tail = real.substr(at + std::char_traits<char>::length(marker));
    return tail.substr(0, tail.find_first_not_of("0123456789."));
  }
  return "";
}

}  // namespace

Probed<std::vector<Toolkit>> probe_toolkits(const Host& host) {
  std::vector<Toolkit> toolkits;
  std::set<std::string> seen;
  for (const std::string& root : toolkit_roots(host)) {
    const std::string nvcc = root + "/bin/nvcc";
    const std::string real = host.realpath(nvcc).value_or("");
    if (real.empty() || !seen.insert(real).second) continue;
    toolkits.push_back({root, nvcc, version_in_header(host, root)});
  }
  if (toolkits.empty())
    return Probed<std::vector<Toolkit>>::absent(
        message("no nvcc in CUDA_HOME, PATH, /usr/local/cuda* or the conda prefix"));
  return Probed<std::vector<Toolkit>>::of(toolkits);
}

Compiler describe_compiler(const Host& host, const std::string& path) {
  const std::string real = host.realpath(path).value_or(path);
  const bool clang = path_basename(path).find("clang") != std::string::npos ||
                     path_basename(real).find("clang") != std::string::npos;
  return {path, clang ? "clang" : "gcc", clang ? clang_version(host, path) : gcc_version(host, path)};
}

Probed<std::vector<Compiler>> probe_compilers(const Host& host) {
  std::vector<Compiler> compilers;
  std::set<std::string> seen;
  std::vector<std::string> candidates;
  for (const char* name : {"CXX", "CUDAHOSTCXX"})
    // Absolute paths only. A value with options or a launcher is dropped by realpath() below.
    if (const auto value = host.env(name); value && value->starts_with('/')) candidates.push_back(*value);
  for (const std::string& folder : split_nonempty(host.env("PATH").value_or("/usr/local/bin:/usr/bin"), ":"))
    for (const char* name : {"g++", "clang++"}) candidates.push_back(folder + "/" + name);
  for (const std::string& path : candidates) {
    const auto real = host.realpath(path);
    if (!real || !seen.insert(*real).second) continue;
    compilers.push_back(describe_compiler(host, path));
  }
  if (compilers.empty())
    return Probed<std::vector<Compiler>>::absent(message("neither g++ nor clang++ is on PATH"));
  return Probed<std::vector<Compiler>>::of(compilers);
}

}  // namespace scankit
