// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/model/wheel.h"

// Wheels, which are somebody else's archives: read strictly and within bounds, and never run.
namespace scankit {

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
