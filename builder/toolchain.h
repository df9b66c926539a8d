// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "builder/cache.h"
#include "builder/target.h"
#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

// Compilers of device code: found, never assumed. So far NVRTC libraries.
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

// Asks the library, in a child, and hashes it. The answer is kept in the cache under the file's size and
// times.
Result<void> identify(const Host& host, const Cache& cache, Nvrtc& nvrtc);

// What it would make of the request; its library is loaded for that, unless it is another user's and we are
// root.
Result<TargetChoice> judge_nvrtc(const Host& host, const Snapshot& snapshot, const TargetRequest& request,
                                 const Cache& cache, Nvrtc& nvrtc);

struct Toolchain {
  Nvrtc nvrtc;
  TargetChoice choice;
};
// The first NVRTC that can make what is asked. The Error says what was looked for and what each one lacked.
Result<Toolchain> choose_toolchain(const Host& host, const Snapshot& snapshot, const TargetRequest& request,
                                   const Cache& cache);
// "no NVRTC here": where was looked, and how to get one.
Error no_nvrtc(const Snapshot& snapshot);

}  // namespace scankit
