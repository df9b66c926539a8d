// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "builder/fix/distribution.h"

namespace scankit {

// The files as a ZIP archive, uncompressed and dated 1980: the same bytes from the same files.
std::string stored_zip(const std::vector<InstalledFile>& files);

}  // namespace scankit
