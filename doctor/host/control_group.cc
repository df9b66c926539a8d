// SPDX-License-Identifier: Apache-2.0
#include "doctor/host/control_group.h"

#include <charconv>
#include <sstream>

#include "doctor/base/files.h"

namespace scankit {
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

}  // namespace scankit
