// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"
#include "envspec/check/facts.h"
#include "envspec/lock/hash_files.h"
#include "envspec/lock/lock.h"

// Makes a lock from an environment, without what an installer or an index knows about wheels:
// resolve.h adds that.

namespace scankit {

struct RepackedWheel {
  std::string file;   // "scankit_selective_scan_cuda-0.1.0-cp38-abi3-manylinux_2_17_x86_64.whl"
  std::string bytes;  // the same ones from the same installed files
};
// What was built on this machine is on no index: the installed files, by their RECORD, as a wheel again. An
// Error says why that cannot be: a file is missing or was changed, or lies outside of site-packages.
Result<RepackedWheel> repack(const Host& host, const Distribution& distribution);

// Machine, Python, torch and distributions, from the snapshot alone: of a stored one, too.
EnvironmentLock lock_facts(const Snapshot& snapshot);

// The libraries with their hashes and what they are bound to, and the modules of ours. An Error: a file that
// cannot be read, or changes meanwhile; a lock with a hole would say that all is well.
Result<void> lock_files(const Host& host, const Snapshot& snapshot, HashCache& cache,
                        const HashProgress& progress, EnvironmentLock& lock);

// What one file is bound to, without its hash.
LockedLibrary locked_library(const Host& host, const std::string& path);

}  // namespace scankit
