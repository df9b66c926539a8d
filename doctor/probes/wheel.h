// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/model/wheel.h"

// Wheels, which are somebody else's archives: read strictly and within bounds, and never run.
namespace scankit {

// The tags and names of `NAME-VERSION(-BUILD)-PYTHON-ABI-PLATFORM.whl` (PEP 427); false where the name is not
// of that form.
bool read_wheel_name(const std::string& file_name, Wheel& wheel);

// What each "Tag:" line of a file WHEEL says. A line may be a compressed set, as a file name is
// ("py2.py3-none-any"): maturin writes such lines.
std::vector<Wheel> tag_lines(const std::string& text);
// All that a name or a line stands for, one by one: "cp311-cp311-manylinux_2_17_x86_64".
std::vector<std::string> expanded_tags(const Wheel& wheel);

struct UnpackedWheel {
  Wheel wheel;
  std::vector<std::string> libraries;  // relative paths, as they would lie in site-packages, sorted
};
// Unpacks the shared libraries into `folder`. Refuses absolute names, "..", links, duplicates, encryption,
// sizes that lie, wrong checksums and hashes, more data than a wheel of its size can mean, and archives that
// another program may read otherwise (wheel_layout.h).
Result<UnpackedWheel> unpack_wheel(const std::string& path, const std::string& folder);
// The whole wheel, as an installer without scripts would: every member by its own name, programs executable.
// The same refusals. What is written before one of them stays.
Result<void> unpack_whole_wheel(const std::string& path, const std::string& folder);

}  // namespace scankit
