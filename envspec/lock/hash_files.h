// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/host/host.h"
#include "envspec/lock/hash_cache.h"

namespace scankit {

struct HashedFile {
  std::uint64_t size = 0;
  Result<std::string> sha256 = std::string();  // Errc::Conflict: it changed while it was read
};

// The hashes of these files, in their order: those that the cache knows by their times, the others read by as
// many threads as the disk and the processors can use. `progress` comes from one thread at a time.
using HashProgress = std::function<void(std::uint64_t bytes_done, std::uint64_t bytes_all)>;
std::vector<HashedFile> hash_files(const Host& host, const std::vector<std::string>& paths, HashCache& cache,
                                   const HashProgress& progress = {});

}  // namespace scankit
