// SPDX-License-Identifier: Apache-2.0
#include "builder/room.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "doctor/base/files.h"
#include "doctor/base/say.h"

namespace scankit {
namespace {

// The largest unit takes NVRTC 13.0 and nvcc 13.0 145 MB (measured: backward_bf16 for sm_90).
constexpr std::uint64_t kCompiler = 200u << 20;
// Images of every architecture, and nvcc's own files, stay below this.
constexpr std::uint64_t kFiles = 100u << 20;

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr == text.data()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> number_in(const Host& host, const std::string& path) {
  const auto text = host.read_file(path, 64);
  return text ? number(*text) : std::nullopt;
}

// cgroups(7): "0::/user.slice/job" of v2, "4:memory:/slurm/job" of v1.
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

std::uint64_t reclaimable(const Host& host, const std::string& group, const std::string& key) {
  const auto text = host.read_file(group + "/memory.stat", 1u << 16);
  std::istringstream lines(text ? *text : "");
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(key)) return number(line.substr(key.size())).value_or(0);
  return 0;
}

// What a group leaves of its limit; "max" is no number, and v1 writes none as one beyond any machine.
std::optional<std::uint64_t> left_of(const Host& host, const std::string& group, bool v2) {
  const auto limit = number_in(host, group + (v2 ? "/memory.max" : "/memory.limit_in_bytes"));
  const auto used = number_in(host, group + (v2 ? "/memory.current" : "/memory.usage_in_bytes"));
  if (!limit || !used) return limit;
  const std::uint64_t gives_way = reclaimable(host, group, v2 ? "inactive_file " : "total_inactive_file ");
  const std::uint64_t held = *used - std::min(*used, gives_way);
  return *limit - std::min(*limit, held);
}

std::string in_mb(std::uint64_t bytes) { return std::to_string(bytes >> 20); }

// The deepest folder of the path that exists.
std::string existing_part(std::string path) {
  struct ::stat info;
  while (path.size() > 1 && ::stat(path.c_str(), &info) != 0) path = path_dirname(path);
  return path;
}

}  // namespace

std::uint64_t free_memory(const Host& host, const Memory& memory) {
  std::uint64_t free = memory.available;
  for (const bool v2 : {true, false}) {
    const std::string root = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    for (std::string group = group_of(host, v2);; group = path_dirname(group)) {
      const bool top = group.size() <= 1;
      if (const auto left = left_of(host, root + (top ? "" : group), v2)) free = std::min(free, *left);
      if (top) break;
    }
  }
  return free;
}

Result<void> check_room(const Host& host, const Probed<Memory>& memory,
                        const std::vector<std::string>& folders) {
  if (memory.present()) {
    const std::uint64_t free = free_memory(host, memory.value);
    if (free < kCompiler)
      return Error{Errc::Unsupported,
                   say("a compiler takes {} MB of memory, and {} MB are free here (the limits of the control "
                       "group counted)",
                       in_mb(kCompiler), in_mb(free)),
                   say("end something, ask for more (Slurm: --mem=2G), or build on another machine: --arch, "
                       "--for")};
  }
  for (const std::string& folder : folders) {
    struct ::statvfs disk;
    const std::string there = existing_part(folder);
    if (::statvfs(there.c_str(), &disk) != 0) continue;
    const std::uint64_t free = std::uint64_t{disk.f_bavail} * disk.f_frsize;
    if (free < kFiles)
      return Error{
          Errc::Io,
          say("a build writes up to {} MB, and {} has {} MB free", in_mb(kFiles), there, in_mb(free)),
          say("make room, or name other folders: --cache-dir, --out, TMPDIR")};
  }
  return {};
}

std::string temporary_folder() {
  const char* named = std::getenv("TMPDIR");
  return named != nullptr && *named != '\0' ? named : "/tmp";
}

}  // namespace scankit
