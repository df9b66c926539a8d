// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <vector>

#include "doctor/base/result.h"

namespace scankit {

// What the unpacked part of one torch wheel says: torch/lib, version.py, METADATA, headers; and tags.txt, the
// file names of that release's wheels. A value that the wheel does not give stays empty.
struct TorchWheel {
  std::string version, minor;
  bool new_strings = false;
  unsigned pybind_internals = 0;
  std::vector<std::string> python_tags;                         // "cp310", "cp313t"
  std::vector<std::pair<std::string, std::string>> properties;  // in the order in which they are printed
  std::vector<std::string> names;                               // exported and telling; sorted
  std::vector<std::string> header_lines;  // places of assertions in its headers (symbol_index.h); sorted
};
Result<TorchWheel> read_torch_wheel(const std::string& folder);
// Of a further patch of a minor release: version and headers
// alone, which now and then differ between patches.
Result<TorchWheel> read_torch_headers(const std::string& folder);

// The same as text, so that the libraries of one wheel can go before the next comes: "KEY<tab>VALUE" lines,
// an empty one, then the names (none of a further patch).
std::string wheel_to_text(const TorchWheel& wheel);
Result<TorchWheel> wheel_from_text(const std::string& text);

}  // namespace scankit
