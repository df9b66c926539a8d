// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "builder/compile/build.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/probes/machine/system.h"

namespace scankit {
namespace {

// The largest unit takes NVRTC 13.0 and nvcc 13.0 145 MB (measured: backward_bf16 for sm_90).
constexpr std::uint64_t kCompiler = 200u << 20;
// Images of every architecture, and nvcc's own files, stay below this.
constexpr std::uint64_t kFiles = 100u << 20;

// One counter of memory.stat, in bytes; 0 if it cannot be read. `key` ends with a blank, so that
// "inactive_file " does not match a longer name.
std::uint64_t reclaimable(const Host& host, const std::string& group, const std::string& key) {
  const auto text = host.read_file(group + "/memory.stat", 1u << 16);
  std::istringstream lines(text ? *text : "");
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(key)) return leading_number(line.substr(key.size())).value_or(0);
  return 0;
}

// Bytes that a group leaves below its limit; nothing if it has no limit. Its usage counts page cache, and
// inactive file pages are what the kernel drops first (cgroup v2 and v1 name them differently).
std::optional<std::uint64_t> left_of(const Host& host, const ControlGroup& group) {
  const auto limit = limit_of(host, group);
  const auto used =
      host.read_file(group.folder + (group.v2 ? "/memory.current" : "/memory.usage_in_bytes"), 64);
  const auto held = used ? leading_number(*used) : std::nullopt;
  if (!limit || !held) return limit;
  const std::uint64_t gives_way =
      reclaimable(host, group.folder, group.v2 ? "inactive_file " : "total_inactive_file ");
  return *limit - std::min(*limit, *held - std::min(*held, gives_way));
}

std::string in_mb(std::uint64_t bytes) { return std::to_string(bytes >> 20); }

}  // namespace

std::string existing_part(std::string path) {
  struct ::stat info;
  while (path.size() > 1 && ::stat(path.c_str(), &info) != 0) path = path_dirname(path);
  return path;
}

std::uint64_t free_memory(const Host& host, const Memory& memory) {
  std::uint64_t free = memory.available;
  for_each_control_group(host, [&](const ControlGroup& group) {
    if (const auto left = left_of(host, group)) free = std::min(free, *left);
  });
  return free;
}

Result<void> check_resources(const Host& host, const Probed<Memory>& memory,
                             const std::vector<std::string>& folders) {
  if (memory.present()) {
    const std::uint64_t free = free_memory(host, memory.value);
    if (free < kCompiler)
      return Error{Errc::Unsupported,
                   message("a compiler needs {} MB of memory, and only {} MB are free (including the cgroup "
                           "limits)",
                           in_mb(kCompiler), in_mb(free)),
                   message("stop other programs, request more memory (Slurm: --mem=2G), or build on another "
                           "machine: --arch, --for")};
  }
  for (const std::string& folder : folders) {
    struct ::statvfs disk;
    const std::string there = existing_part(folder);
    // f_bavail is what an unprivileged user may take; f_bfree counts the blocks reserved for root as well.
    if (::statvfs(there.c_str(), &disk) != 0) continue;
    const std::uint64_t free = std::uint64_t{disk.f_bavail} * disk.f_frsize;
    if (free < kFiles)
      return Error{Errc::Io,
                   message("a build writes up to {} MB, and {} has only {} MB free", in_mb(kFiles), there,
                           in_mb(free)),
                   message("free some space, or choose other directories: --cache-dir, --out, TMPDIR")};
  }
  return {};
}

std::string temporary_folder() {
  const char* named = std::getenv("TMPDIR");
  return named != nullptr && *named != '\0' ? named : "/tmp";
}

}  // namespace scankit
