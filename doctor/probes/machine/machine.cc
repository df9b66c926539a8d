// SPDX-License-Identifier: Apache-2.0
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <map>
#include <set>
#include <sstream>

#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/elf/library.h"
#include "doctor/probes/machine/system.h"

// Distribution, C and C++ runtime, CPU, memory and disk. What is read from /proc or asked of the kernel
// describes the machine that runs scankit, and is left out for an unpacked root.
namespace scankit::probes {
namespace {

// The shell-like KEY="value" lines of os-release(5). Escapes inside quotes stay as they are written.
std::map<std::string, std::string> assignments(const std::string& text) {
  std::map<std::string, std::string> values;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto equals = line.find('=');
    if (equals == std::string::npos || line.starts_with('#')) continue;
    std::string value = line.substr(equals + 1);
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\''))
      value = value.substr(1, value.size() - 2);
    values[line.substr(0, equals)] = value;
  }
  return values;
}

// "" where nothing points to a container. The marker files are those that the engines put into every
// container; Kubernetes comes after them and is recognised by the variable that it sets for its API server.
std::string container_of(const Host& host) {
  if (host.exists("/.dockerenv")) return "docker";
  if (host.exists("/run/.containerenv")) return "podman";
  if (host.exists("/.singularity.d")) return "apptainer";
  if (host.env("KUBERNETES_SERVICE_HOST")) return "kubernetes";
  const auto named =
      host.read_file("/run/systemd/container", 256);  // written by systemd-nspawn, lxc and others
  if (!named) return "";
  return named->substr(0, named->find('\n'));
}

// First of the usual folders that holds the file. The loader's cache is not needed: these two libraries are
// the system's own, and a system without them in one of these folders does not start a program.
std::string find_system_library(const Host& host, const std::string& name) {
  for (const char* folder : {"/lib/x86_64-linux-gnu/", "/usr/lib/x86_64-linux-gnu/", "/lib64/", "/usr/lib64/",
                             "/lib/aarch64-linux-gnu/", "/usr/lib/aarch64-linux-gnu/", "/lib/", "/usr/lib/"})
    if (host.exists(folder + name)) return folder + name;
  return "";
}

}  // namespace

// "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic, ..." -> "36.4.3". NVIDIA's Linux for Tegra
// has the file; a server of the same processor has none.
std::string jetson_release(const Host& host) {
  const auto text = host.read_file("/etc/nv_tegra_release", 1u << 12);
  if (!text || !text->starts_with("# R")) return "";
  const auto number = [&](std::size_t from) {
    return text->substr(from, text->find_first_not_of("0123456789.", from) - from);
  };
  const std::string_view key = "REVISION: ";
  const auto revision = text->find(key);
  const std::string release = number(3);
  if (release.empty() || revision == std::string::npos) return release;
  return release + "." + number(revision + key.size());
}

Probed<Os> probe_os(const Host& host) {
  Os os;
  Message note;
  // os-release(5): the first takes precedence, the second is the vendor's.
  for (const char* file : {"/etc/os-release", "/usr/lib/os-release"}) {
    const auto text = host.read_file(file, 1u << 16);
    if (!text) {
      note = text.error().message;
      continue;
    }
    auto values = assignments(*text);
    os.id = values["ID"];
    os.version_id = values["VERSION_ID"];
    os.pretty_name = values["PRETTY_NAME"];
    note = {};
    break;
  }
  if (host.is_live()) {
    utsname name{};
    ::uname(&name);
    os.kernel = name.release;
    os.machine = name.machine;
    os.wsl = os.kernel.find("icrosoft") != std::string::npos;  // "5.15.90.1-microsoft-standard-WSL2"
  }
  os.l4t = jetson_release(host);
  os.container = container_of(host);
  // The kernel is a fact of its own: without os-release, a live system is still Present, with a note.
  if (!note.empty() && os.kernel.empty()) return Probed<Os>::failed(note);
  return {ProbeState::Present, note, os};
}

Probed<LibC> probe_libc(const Host& host) {
  const std::string path = find_system_library(host, "libc.so.6");
  if (path.empty()) {
    for (const char* musl : {"/lib/ld-musl-x86_64.so.1", "/lib/ld-musl-aarch64.so.1"})
      if (host.exists(musl)) return Probed<LibC>::of({"musl", "", musl});
    return Probed<LibC>::failed(message("no libc.so.6 in the system's library directories"));
  }
  const auto defined = elf::newest_defined_version(host, path, "GLIBC_");
  if (!defined) return Probed<LibC>::failed(defined.error().message);
  if (defined->empty()) return Probed<LibC>::failed(message("{} defines no GLIBC_ version", path));
  return Probed<LibC>::of({"glibc", *defined, path});
}

Probed<LibStdCxx> probe_libstdcxx(const Host& host) {
  const std::string path = find_system_library(host, "libstdc++.so.6");
  if (path.empty())
    return Probed<LibStdCxx>::absent(message("no libstdc++.so.6 in the system's library directories"));
  const auto glibcxx = elf::newest_defined_version(host, path, "GLIBCXX_");
  const auto cxxabi = elf::newest_defined_version(host, path, "CXXABI_");
  if (!glibcxx) return Probed<LibStdCxx>::failed(glibcxx.error().message);
  return Probed<LibStdCxx>::of({path, *glibcxx, cxxabi.value_or("")});
}

namespace {

std::string after_colon(const std::string& line) {
  const auto colon = line.find(':');
  if (colon == std::string::npos) return "";
  const auto start = line.find_first_not_of(" \t", colon + 1);
  return start == std::string::npos ? "" : line.substr(start);
}

// What matters for which code path of a kernel runs; the full list is long and helps nobody.
constexpr const char* kFeatures[] = {"sse4_2",  "avx",      "avx2",     "fma",      "f16c",
                                     "avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_bf16"};

// The tightest limit in bytes; numbers beyond the machine's memory mean none. Every group up to the root
// binds, so that the smallest counts (cgroups(7)).
std::optional<std::uint64_t> cgroup_limit(const Host& host, std::uint64_t total) {
  std::optional<std::uint64_t> tightest;
  for_each_control_group(host, [&](const ControlGroup& group) {
    if (const auto limit = limit_of(host, group); limit && *limit < std::min(total, tightest.value_or(total)))
      tightest = limit;
  });
  return tightest;
}

}  // namespace

Probed<Cpu> probe_cpu(const Host& host) {
  if (!host.is_live()) return Probed<Cpu>::absent(message("the examined system is not running"));
  const auto text = host.read_file("/proc/cpuinfo", 8u << 20);
  if (!text) return Probed<Cpu>::failed(text.error().message);
  Cpu cpu;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("processor")) ++cpu.logical;
    if (cpu.model.empty() && line.starts_with("model name")) cpu.model = after_colon(line);
    if (!cpu.features.empty() || !line.starts_with("flags")) continue;
    const std::string flags = " " + after_colon(line) + " ";
    for (const char* feature : kFeatures)
      if (flags.find(std::string(" ") + feature + " ") != std::string::npos)
        cpu.features.emplace_back(feature);
  }
  return Probed<Cpu>::of(cpu);
}

Probed<Memory> probe_memory(const Host& host) {
  if (!host.is_live()) return Probed<Memory>::absent(message("the examined system is not running"));
  const auto text = host.read_file("/proc/meminfo", 1u << 16);
  if (!text) return Probed<Memory>::failed(text.error().message);
  Memory memory;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    // proc(5): the unit "kB" means 1024 bytes.
    const std::uint64_t bytes = leading_number(after_colon(line)).value_or(0) * 1024;
    if (line.starts_with("MemTotal:")) memory.total = bytes;
    if (line.starts_with("MemAvailable:")) memory.available = bytes;
  }
  if (memory.total == 0) return Probed<Memory>::failed(message("/proc/meminfo contains no MemTotal"));
  memory.cgroup_limit = cgroup_limit(host, memory.total);
  return Probed<Memory>::of(memory);
}

Probed<Disk> probe_disk(const Host& host, const std::string& path) {
  if (!host.is_live()) return Probed<Disk>::absent(message("the examined system is not running"));
  struct ::statvfs st {};
  if (::statvfs(path.c_str(), &st) != 0)
    return Probed<Disk>::failed(message("cannot read the free space of {}: {}", path, std::strerror(errno)));
  return Probed<Disk>::of(
      // f_bavail, not f_bfree: the reserve is for root alone (statvfs(3)).
      {path, std::uint64_t{st.f_bavail} * st.f_frsize, ::access(path.c_str(), W_OK) == 0});
}

namespace {

// The path of this process's group: "0::/user.slice/job" of v2, "4:memory:/slurm/job" of v1 (cgroups(7)). ""
// where there is none.
std::string group_of(const Host& host, bool v2) {
  const auto text = host.read_file("/proc/self/cgroup", 1u << 16);
  std::istringstream lines(text ? *text : "");
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    // Commas at both ends, so that only a whole controller's name matches.
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    if (v2 ? line.starts_with("0::") : controllers.find(",memory,") != std::string::npos)
      return line.substr(second + 1);
  }
  return "";
}

}  // namespace

// Also visits directories that do not exist, of the version that is not mounted: limit_of() has no
// answer there.
void for_each_control_group(const Host& host, const std::function<void(const ControlGroup&)>& visit) {
  for (const bool v2 : {true, false}) {
    const std::string root = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    for (std::string group = group_of(host, v2);; group = path_dirname(group)) {
      const bool top = group.size() <= 1;
      visit({root + (top ? "" : group), v2});
      if (top) break;
    }
  }
}

std::optional<std::uint64_t> limit_of(const Host& host, const ControlGroup& group) {
  const auto text = host.read_file(group.folder + (group.v2 ? "/memory.max" : "/memory.limit_in_bytes"), 64);
  return text ? leading_number(*text) : std::nullopt;
}

std::optional<std::uint64_t> leading_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr == text.data()) return std::nullopt;
  return value;
}

// CUDA toolkits and host compilers that are installed, wherever they are. Which of them a build of extension
// sources would take is another question, which sources/build_tools.cc answers.

namespace {

// `#define CUDA_VERSION 13000` of cuda.h: 1000 * major + 10 * minor (CUDA driver API, cuda.h). A header is
// quicker to read than nvcc is to start. Some installations have it below targets/ only.
std::string version_in_header(const Host& host, const std::string& root) {
  for (const char* header : {"/include/cuda.h", "/targets/x86_64-linux/include/cuda.h",
                             "/targets/sbsa-linux/include/cuda.h", "/targets/aarch64-linux/include/cuda.h"}) {
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

}  // namespace scankit::probes
