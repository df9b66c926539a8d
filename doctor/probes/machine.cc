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

// cgroup v2's own file, or v1's. "max" and numbers beyond the machine's memory mean no limit.
std::optional<std::uint64_t> cgroup_limit(const Host& host, std::uint64_t total) {
  for (const char* file : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
    if (const auto text = host.read_file(file, 64))
      if (const auto limit = number(*text); limit && *limit < total) return limit;
  return std::nullopt;
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
