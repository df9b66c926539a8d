// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace scankit {

// What one library of the process after `import torch` offers to a module that comes later.
struct ExportTable {
  std::string path, soname;
  bool global = false;  // in the scope that every later library sees
  std::vector<std::string> needed, versions;
  std::uint64_t count = 0;
  std::string names;  // sorted, packed by doctor/probes/extensions/exports.h
};

// Taken on request (--with-exports): some MB, with which a file that is not on that machine can be resolved
// name by name.
struct Exports {
  std::vector<ExportTable> libraries;
};

}  // namespace scankit
