// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "builder/compile/cache.h"
#include "builder/module/target.h"
#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

// NVRTC libraries: found, never assumed. choose_toolchain.h chooses among them and the other compilers.
namespace scankit {

struct Nvrtc {
  std::string path, builtins;  // builtins "": the library finds its own
  std::string origin;          // "torch's wheels", "system toolkit /usr/local/cuda-13.0"
  std::string version;         // "13.0"; this and what follows by identify()
  std::vector<unsigned> archs;
  std::string sha256;  // of the library and of its builtins
};

// Where an NVRTC lies, best first: the environment's wheels, torch's own folder, conda, system toolkits.
// Files only.
std::vector<Nvrtc> find_nvrtc(const Host& host, const Snapshot& snapshot);
// Those of one folder, newest first; or the one that `path` itself is.
std::vector<Nvrtc> nvrtc_at(const Host& host, const std::string& path, const std::string& origin);

// Asks the library, in a child, and hashes it. The answer is kept in the cache under the file's size and
// times. As root it is not loaded where it is another user's.
Result<void> identify(const Host& host, const Cache& cache, Nvrtc& nvrtc);

}  // namespace scankit
