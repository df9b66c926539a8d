// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/elf/bytes.h"

namespace scankit {

// Why two programs may read this zip archive differently, as a sentence; "" where they cannot. One that reads
// from the front and one that reads from the end must meet the same members: each byte belongs to exactly one
// header, member or directory, and each member says the same of itself in both places. `names` are the
// members as the unpacker lists them, in its order. (uv and PyPI refuse such archives: CVE-2025-54368.)
std::string archive_ambiguity(const FileBytes& file, const std::vector<std::string>& names);

}  // namespace scankit
