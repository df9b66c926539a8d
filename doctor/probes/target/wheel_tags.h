// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/model/wheel.h"

// For which Pythons and machines a wheel is: by its name, and by its .dist-info/WHEEL.
namespace scankit {

constexpr std::size_t kMostTags = 1000;  // that are read of one wheel; those with most have some thirty

// The tags and names of `NAME-VERSION(-BUILD)-PYTHON-ABI-PLATFORM.whl` (PEP 427); false where the name is not
// of that form.
bool read_wheel_name(const std::string& file_name, Wheel& wheel);

// What each "Tag:" line of a file WHEEL says. A line may be a compressed set, as a file name is
// ("py2.py3-none-any"): maturin writes such lines.
std::vector<Wheel> tag_lines(const std::string& text);
// All that a name or a line stands for, one by one: "cp311-cp311-manylinux_2_17_x86_64".
std::vector<std::string> expanded_tags(const Wheel& wheel);
// The tags of all lines, none twice, into `wheel`. False where the text names more tags than any wheel has.
bool take_tags(const std::string& text, Wheel& wheel);

}  // namespace scankit
