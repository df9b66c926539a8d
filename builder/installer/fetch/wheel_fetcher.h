// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "builder/toolchain/toolchain.h"
#include "doctor/base/result.h"
#include "doctor/host/host.h"

// Wheels for a machine with neither pip nor uv: which package indexes the user's own configuration names
// (scankit knows none), their pages (PEP 503, HTML, and PEP 691, JSON), and the download.
namespace scankit::installer {

// What index_settings() found. The main index comes first, if a setting names one.
struct IndexSettings {
  struct Index {
    std::string url;
    std::string from;  // "PIP_INDEX_URL", "/etc/pip.conf"
  };
  std::vector<Index> indexes;  // in the order in which they are asked, no URL twice
  std::string certificates;    // pip's "cert"
};
// Variables first, then the environment's, the user's and the system's pip.conf and uv.toml; the first that
// names a main index decides over it, further ones ("extra") add up.
IndexSettings index_settings(const Host& host);

// What to do where none is named.
std::string how_to_name_an_index();

struct IndexFile {
  std::string name;     // "nvidia_cuda_nvrtc-13.0.88-py3-none-manylinux2014_x86_64.whl"
  std::string url;      // absolute
  std::string sha256;   // "" where the index gives none
  bool yanked = false;  // PEP 592: withdrawn by its author; pins still find it
};
// The files that a project's page lists, in its order. `url` is where the page came from, for relative
// references and messages. The format is told by the first character. Errc::Malformed if it is neither.
Result<std::vector<IndexFile>> parse_index_page(std::string_view page, const std::string& url);

// RFC 3986, 5.2, as far as http needs it. The base's name and password go along to its own host alone.
std::string resolve_url(const std::string& base, const std::string& reference);
// The page of a project (PEP 503): INDEX + "/" + NAME + "/", without any query of the index.
std::string project_url(const std::string& index, const std::string& normalised_name);
// The Accept header for a page: JSON before HTML (PEP 691).
extern const char* const kIndexTypes;

// One file by https, by the helper scankit-fetch (builder/helpers/fetch) and the host's libcurl: the static
// scankit cannot load TLS. Also what a lock needs: a URL and a hash.

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
toolchain::WheelFetcher wheel_fetcher(const std::string& cache_folder);

}  // namespace scankit::installer
