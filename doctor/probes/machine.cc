// SPDX-License-Identifier: Apache-2.0
#include <sys/statvfs.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <sstream>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/probes/system.h"

namespace scankit {
namespace {

std::string after_colon(const std::string& line) {
  const auto colon = line.find(':');
  if (colon == std::string::npos) return "";
  const auto start = line.find_first_not_of(" \t", colon + 1);
  return start == std::string::npos ? "" : line.substr(start);
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr == text.data()) return std::nullopt;
  return value;
}

// What matters for which code path of a kernel runs; the full list is long and helps nobody.
constexpr const char* kFeatures[] = {"sse4_2",  "avx",      "avx2",     "fma",      "f16c",
                                     "avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_bf16"};

// The group of this process below a controller's root, from /proc/self/cgroup: "0::/user.slice/job" of v2,
// "4:memory:/slurm/job" of v1 (cgroups(7)).
std::string group_of(const Host& host, bool v2) {
  const auto text = host.read_file("/proc/self/cgroup", 1u << 16);
  std::istringstream lines(text ? *text : "");
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    if (v2 ? line.starts_with("0::") : controllers.find(",memory,") != std::string::npos)
      return line.substr(second + 1);
  }
  return "";
}

// The tightest of the group's own limit and those of all above it: each binds. "max" and numbers beyond the
// machine's memory mean no limit. In a container the root of the files is often the group itself.
std::optional<std::uint64_t> cgroup_limit(const Host& host, std::uint64_t total) {
  std::optional<std::uint64_t> tightest;
  for (const bool v2 : {true, false}) {
    const std::string root = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    const std::string file = v2 ? "/memory.max" : "/memory.limit_in_bytes";
    for (std::string group = group_of(host, v2);; group = path_dirname(group)) {
      const bool top = group.size() <= 1;
      if (const auto text = host.read_file(root + (top ? "" : group) + file, 64))
        if (const auto limit = number(*text); limit && *limit < std::min(total, tightest.value_or(total)))
          tightest = limit;
      if (top) break;
    }
  }
  return tightest;
}

}  // namespace

Probed<Cpu> probe_cpu(const Host& host) {
  if (!host.is_live()) return Probed<Cpu>::absent(say("the examined system is not running"));
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
  if (!host.is_live()) return Probed<Memory>::absent(say("the examined system is not running"));
  const auto text = host.read_file("/proc/meminfo", 1u << 16);
  if (!text) return Probed<Memory>::failed(text.error().message);
  Memory memory;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    const std::uint64_t bytes = number(after_colon(line)).value_or(0) * 1024;
    if (line.starts_with("MemTotal:")) memory.total = bytes;
    if (line.starts_with("MemAvailable:")) memory.available = bytes;
  }
  if (memory.total == 0) return Probed<Memory>::failed(say("/proc/meminfo holds no MemTotal"));
  memory.cgroup_limit = cgroup_limit(host, memory.total);
  return Probed<Memory>::of(memory);
}

Probed<Disk> probe_disk(const Host& host, const std::string& path) {
  if (!host.is_live()) return Probed<Disk>::absent(say("the examined system is not running"));
  struct ::statvfs st {};
  if (::statvfs(path.c_str(), &st) != 0)
    return Probed<Disk>::failed(say("cannot ask for the free space of {}: {}", path, std::strerror(errno)));
  return Probed<Disk>::of(
      {path, std::uint64_t{st.f_bavail} * st.f_frsize, ::access(path.c_str(), W_OK) == 0});
}

}  // namespace scankit
