// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

// The shared libraries of the installed packages, as a lock calls them.
namespace scankit {

struct PlacedLibrary {
  std::string path;
  std::string inner;         // below its folder of sys.path: "torch/lib/libc10.so"
  std::string distribution;  // as PEP 503 writes it; "" where no RECORD lists the file
};
struct PlacedLibraries {
  std::vector<PlacedLibrary> libraries;  // by `inner`, each once: of two copies the one that import finds
  std::vector<std::string> unreadable;   // folders, with the reason
};
PlacedLibraries placed_libraries(const Host& host, const Snapshot& snapshot);

}  // namespace scankit
