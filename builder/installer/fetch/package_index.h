// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/host/host.h"

// Which package indexes the user's own configuration names, for a machine with neither pip nor uv: scankit
// knows none.
// The pages of a package index: PEP 503 (HTML) and PEP 691 (JSON).

namespace scankit {

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

}  // namespace scankit
