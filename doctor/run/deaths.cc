// SPDX-License-Identifier: Apache-2.0
#include "doctor/run/deaths.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "doctor/base/files.h"
#include "doctor/base/text.h"

namespace scankit {
namespace {

constexpr std::size_t kLimit = 1u << 20;

// "" if the file cannot be read. read_whole_file() takes files of /proc, whose size is 0.
std::string text_of(const std::string& path) { return read_whole_file(path, kLimit).value_or(""); }

// The number behind "oom_kill " at the start of a line.
std::optional<std::uint64_t> oom_kill_line(const std::string& text) {
  for (const std::string_view line : lines_of(text))
    if (line.starts_with("oom_kill ")) return std::strtoull(std::string(line.substr(9)).c_str(), nullptr, 10);
  return std::nullopt;
}

// Files that count for our control group. In a container, the path of /proc/self/cgroup often is that of the
// host, and the group itself is mounted at the root.
std::vector<std::string> counters() {
  std::vector<std::string> files;
  const std::string groups = text_of("/proc/self/cgroup");
  for (const std::string_view line : lines_of(groups)) {
    const auto parts = split(line, ":");
    if (parts.size() != 3) continue;
    const auto controllers = split(parts[1], ",");
    const bool memory = std::ranges::find(controllers, "memory") != controllers.end();
    if (!memory && !parts[1].empty()) continue;
    const std::string base = memory ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
    const std::string file = memory ? "memory.oom_control" : "memory.events";
    files.push_back(path_normalize(base + parts[2] + "/" + file));
    files.push_back(path_join(base, file));
  }
  return files;
}

}  // namespace

MemoryKills out_of_memory_kills() {
  MemoryKills kills;
  kills.machine = oom_kill_line(text_of("/proc/vmstat")).value_or(0);
  for (const std::string& file : counters())
    if (const auto counted = oom_kill_line(text_of(file))) {
      kills.group = *counted;
      return kills;
    }
  kills.group = kills.machine;
  return kills;
}

std::vector<pid_t> pids_in(const std::string& output) {
  constexpr std::size_t kMost = 64;
  std::vector<pid_t> pids;
  for (auto at = output.find("pid: "); at != std::string::npos && pids.size() < kMost;
       at = output.find("pid: ", at + 1))
    if (const long pid = std::strtol(output.c_str() + at + 5, nullptr, 10); pid > 1 && pid < 1L << 30)
      pids.push_back(static_cast<pid_t>(pid));
  return pids;
}

// arch/x86/mm/fault.c and arch/x86/kernel/traps.c: "python3[41]: segfault at 0 ip ... error 4 in X.so[...]",
// "traps: python3[41] general protection fault ip:... in X.so[...]".
std::optional<std::string> crash_in_line(const std::string& line, const std::vector<pid_t>& pids) {
  const bool ours = std::ranges::any_of(
      pids, [&](pid_t pid) { return line.find("[" + std::to_string(pid) + "]") != std::string::npos; });
  const bool crash = line.find("segfault at ") != std::string::npos ||
                     line.find("general protection fault") != std::string::npos ||
                     line.find("trap ") != std::string::npos;
  const auto in = line.rfind(" in ");
  if (!ours || !crash || in == std::string::npos) return std::nullopt;
  const std::string name = line.substr(in + 4, line.find('[', in) - in - 4);
  return name.empty() ? std::nullopt : std::optional(name);
}

// mm/oom_kill.c: "Memory cgroup out of memory: Killed process 41 (python) total-vm:...", and the same with
// "Out of memory" for the whole machine.
bool memory_kill_in_line(const std::string& line, const std::vector<pid_t>& pids) {
  constexpr std::string_view kKilled = "Killed process ";
  const auto killed = line.find(kKilled);
  if (killed == std::string::npos || line.find("ut of memory: ") == std::string::npos) return false;
  const long pid = std::strtol(line.c_str() + killed + kKilled.size(), nullptr, 10);
  return std::ranges::find(pids, static_cast<pid_t>(pid)) != pids.end();
}

// Each read(2) of /dev/kmsg gives one record: "PRIORITY,SEQUENCE,MICROSECONDS,FLAGS;TEXT". The last crash
// counts.
KernelDeaths deaths_in_kernel_log(const std::vector<pid_t>& pids, double since) {
  const Descriptor log(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  KernelDeaths deaths;
  if (log.get() < 0) return deaths;
  constexpr int kMostRecords = 100'000;
  std::array<char, 8192> record{};
  for (int i = 0; i < kMostRecords; ++i) {
    const ssize_t got = ::read(log.get(), record.data(), record.size());
    if (got < 0 && errno == EPIPE) continue;  // records were overwritten meanwhile
    if (got <= 0) break;
    const std::string text(record.data(), static_cast<std::size_t>(got));
    const auto fields = split(text.substr(0, text.find(';')), ",");
    if (fields.size() < 3 || std::strtod(fields[2].c_str(), nullptr) < since * 1e6) continue;
    const std::string line = text.substr(0, text.find('\n'));
    if (auto found = crash_in_line(line, pids)) deaths.crashed_in = *std::move(found);
    if (memory_kill_in_line(line, pids)) ++deaths.memory_kills;
  }
  return deaths;
}

}  // namespace scankit
