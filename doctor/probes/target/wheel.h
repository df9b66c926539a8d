// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/elf/bytes.h"
#include "doctor/model/packages.h"

// Wheels (PEP 427): for which Pythons and machines one is, by its file name and its .dist-info/WHEEL, and
// how it is unpacked. A wheel is somebody else's archive: it is read strictly and within bounds, and
// never run.

namespace scankit::probes {

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

// Why two programs may read this zip archive differently, as a sentence; "" where they cannot. One that reads
// from the front and one that reads from the end must meet the same members: each byte belongs to exactly one
// header, member or directory, and each member says the same of itself in both places. `names` are the
// members as the unpacker lists them, in its order. (uv and PyPI refuse such archives: CVE-2025-54368.)
Message archive_ambiguity(const elf::FileBytes& file, const std::vector<std::string>& names);

struct UnpackedWheel {
  Wheel wheel;
  std::vector<std::string> libraries;  // relative paths, as they would lie in site-packages, sorted
};
// Unpacks the shared libraries into `folder`. Refuses absolute names, "..", links, duplicates, encryption,
// sizes that lie, wrong checksums and hashes, more data than a wheel of its size can mean, and archives that
// another program may read otherwise.
Result<UnpackedWheel> unpack_wheel(const std::string& path, const std::string& folder);
// The whole wheel, as an installer without scripts would: every member by its own name, programs executable.
// The same refusals. What is written before one of them stays.
Result<void> unpack_whole_wheel(const std::string& path, const std::string& folder);

// scankit.module.yaml of a wheel, nothing if it has none: that of its .dist-info directory, else that of a package at
// the top, PACKAGE/scankit.module.yaml, where a build backend puts it as a data file of the package.
struct WheelText {
  std::string name, text;  // of the member
};
Result<std::optional<WheelText>> module_file_of_wheel(const std::string& path);
// The first of these files that it would put into site-packages, under that name: "my_ext/tests/smoke.py".
Result<std::optional<WheelText>> file_of_wheel(const std::string& path,
                                               const std::vector<std::string>& names);
// The text of its .dist-info/RECORD.
Result<std::string> record_of_wheel(const std::string& path);
// What is wrong with scankit.module.yaml, for its maintainer; "" where nothing is, or where the wheel has none.
Message module_file_problem(const Wheel& wheel);

}  // namespace scankit::probes
