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

// One library. find_nvrtc() fills the paths and the origin; identify() fills the rest.
struct Nvrtc {
  std::string path, builtins;  // builtins "": the library finds its own
  std::string origin;          // "torch's wheels", "system toolkit /usr/local/cuda-13.0"
  std::string version;         // "13.0"; this and what follows by identify()
  std::vector<unsigned> archs;
  std::string sha256;  // of the library and of its builtins
};

// The NVRTC libraries of this machine, best first: the environment's wheels, torch's own directory,
// the prefix's libraries, system toolkits; of these, those of torch's own CUDA major before the
// others. Files only.
std::vector<Nvrtc> find_nvrtc(const Host& host, const Snapshot& snapshot);
// Those in one directory, newest first, or the single one that `path` itself names.
std::vector<Nvrtc> nvrtc_at(const Host& host, const std::string& path, const std::string& origin);

// Asks the library for version and architectures, in a child, and hashes it. The answer is kept in the cache,
// keyed by the files' sizes and times. As root, another user's library is not loaded.
Result<void> identify(const Host& host, const Cache& cache, Nvrtc& nvrtc);

}  // namespace scankit
