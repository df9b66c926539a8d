// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "doctor/host/host.h"

// The control groups that bound the memory of this process (cgroups(7)), of version 1 and 2.
namespace scankit {

struct ControlGroup {
  std::string folder;  // below /sys/fs/cgroup
  bool v2 = false;
};
// This process's own group and all above it, up to the root: each binds. In a container the root of the files
// is often the group itself.
void for_each_control_group(const Host& host, const std::function<void(const ControlGroup&)>& visit);

// Its limit in bytes. "max" is no number; v1 writes none as one beyond any machine.
std::optional<std::uint64_t> limit_of(const Host& host, const ControlGroup& group);

// The number that a text begins with.
std::optional<std::uint64_t> leading_number(std::string_view text);

}  // namespace scankit
