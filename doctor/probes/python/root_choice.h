// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/host/host.h"

// An unpacked root file system or image (--root).
namespace scankit {

// The absolute path of `folder`, or why it is no root file system.
Result<std::string> root_folder(const std::string& folder);

struct PlacedPython {
  std::string path, origin;  // an interpreter or an environment's folder, as the examined system names it
};
// Where images keep their Pythons. No variable says which one is active: an image's PATH is in its
// configuration, not in its files.
std::vector<PlacedPython> pythons_in_root(const Host& host);

}  // namespace scankit
