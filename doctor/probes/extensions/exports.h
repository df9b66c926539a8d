// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// The names of every library that is loaded after `import torch`.
Probed<Exports> probe_exports(const Host& host, const Snapshot& so_far);

// Sonames that the loader finds for an object without an RPATH: LD_LIBRARY_PATH, ld.so.cache, the default
// directories. From it --so with --from learns which libraries the target has.
Probed<std::vector<std::string>> probe_reachable(const Host& host, const Snapshot& so_far);

// Sorted names as one line of text: each without what it shares with the one before, zstd, base64. 110
// thousand names of torch are 12 MB as they are and 1 MB so.
std::string pack_names(const std::vector<std::string>& sorted);
// A stranger's text: Errc::Malformed for anything but packed names.
Result<std::vector<std::string>> unpack_names(const std::string& packed);

}  // namespace scankit
