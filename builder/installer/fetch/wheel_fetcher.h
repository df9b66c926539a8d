// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "builder/toolchain/fetch_wheels.h"
#include "doctor/base/result.h"

// One file by https, by the helper scankit-fetch (builder/helpers/fetch) and the host's libcurl: the static
// scankit cannot load TLS. Also what a lock needs: a URL and a hash.

namespace scankit {

struct DownloadRequest {
  std::string url, out;
  std::string sha256;                // lower-case hex; "": unknown, as for an index's page
  std::uint64_t size = 0;            // 0: unknown
  std::uint64_t limit = 1ull << 30;  // bytes; a longer file is refused
  std::string accept;                // the Accept header; "": anything
  std::string certificates;          // a file of them; "": SSL_CERT_FILE and its like, else libcurl's own
  std::function<void(std::uint64_t have, std::uint64_t total)> progress;  // total 0: the server does not say
  unsigned attempts = 5;                                                  // in a row that bring nothing
  std::chrono::milliseconds backoff{500};  // doubled after each attempt that brings nothing
  std::chrono::seconds stall{30};          // of silence, which end an attempt
};

// `out` appears whole and with the right hash, or not at all. What came of a file whose hash is known stays
// in OUT.part, and the next download goes on there. Errc::Unsupported: no libcurl here.
Result<void> download(const DownloadRequest& request);

// Brings wheels where there is neither pip nor uv: from the index that the user's configuration names, by
// scankit-fetch. Only what has the pinned hash is unpacked. `cache_folder`: where a download that was cut
// waits for the next run; "": nowhere.
WheelFetcher wheel_fetcher(const std::string& cache_folder);

}  // namespace scankit
