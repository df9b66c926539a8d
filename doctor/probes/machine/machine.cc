// SPDX-License-Identifier: Apache-2.0
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstring>
#include <sstream>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/host/control_group.h"
#include "doctor/probes/machine/system.h"

namespace scankit {
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

// The tightest limit; numbers beyond the machine's memory mean none.
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
    const std::uint64_t bytes = leading_number(after_colon(line)).value_or(0) * 1024;
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
