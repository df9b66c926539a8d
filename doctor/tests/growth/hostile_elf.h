// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>

namespace scankit::growth {

struct HostileElf {
  std::size_t folders = 0, needed = 0, undefined = 0;
  std::string folder = "/nowhere/";  // each with its number behind it
};
// A shared library for this machine that a loader would take: headers, dynamic section, names and symbols.
std::string elf_bytes(const HostileElf& wanted);

}  // namespace scankit::growth
