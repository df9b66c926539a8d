// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace scankit {

// Which code imports compiled extension modules (importers.yaml).
struct KnownImporters {
  std::vector<std::string> packages;  // import names
  std::vector<std::string>
      source_folders;  // of projects that are run from their checkout, relative to its root
};
const KnownImporters& known_importers();

}  // namespace scankit
