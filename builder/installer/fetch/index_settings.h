// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/host/host.h"

// Which package indexes the user's own configuration names, for a machine with neither pip nor uv: scankit
// knows none.
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

}  // namespace scankit
