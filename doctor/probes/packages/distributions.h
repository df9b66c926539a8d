// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

// What is installed, by the metadata on disk: .dist-info (PEP 376, PEP 427), .egg-info, eggs and .egg-link.
// pip is never asked, because it may be missing, broken or another environment's.
namespace scankit {

// Every installed distribution on sys.path, in the order in which importlib.metadata would find them; the
// first of a name is the one that counts. Failed where a site-packages folder exists but cannot be read.
Probed<std::vector<Distribution>> probe_distributions(const Host& host, const Python& python);

// What it was installed from, where that was no index (direct_url.json, PEP 610): an absolute path, or the
// URL of a requirement ("git+https://host/repository@COMMIT", "https://host/file.whl"); "" for an index.
std::string source_of(const Host& host, const Distribution& distribution);
// The .so files that the distribution's RECORD lists and that
// exist. Empty where there is no RECORD (apt, conda).
std::vector<std::string> shared_libraries_of(const Host& host, const Distribution& distribution);

}  // namespace scankit
