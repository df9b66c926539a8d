// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace scankit {

// A wheel under diagnosis (--so x.whl), by its own words. An installer goes by the tags alone.
struct Wheel {
  std::string path, name, version;
  std::vector<std::string> python_tags, abi_tags, platform_tags;  // "cp311", "abi3", "manylinux_2_28_x86_64"
  std::string tags_from;  // "file name", or "WHEEL" where the file name holds none; "" where neither does
  std::uint64_t members = 0;
};

}  // namespace scankit
