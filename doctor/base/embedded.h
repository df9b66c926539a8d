// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Files that scankit carries inside itself, compressed by the build (scankit_embed and scankit_embed_together of
// ci/cmake/embed.cmake) with zstd, which unpacks 4 MB in some 5 ms. Who needs one again keeps the answer. Bytes
// that cannot be unpacked are a defect of the build: the program ends.

#define SCANKIT_EMBEDDED(symbol)  \
  extern "C" const char symbol[]; \
  extern "C" const char symbol##_end[]
#define SCANKIT_UNPACKED(symbol) ::scankit::unpacked(symbol, symbol##_end)

namespace scankit {

// The file as it was when it was embedded.
std::string unpacked(const char* begin, const char* end);

// Several files that were embedded together.
class EmbeddedFiles {
 public:
  explicit EmbeddedFiles(std::string joined);
  EmbeddedFiles(const EmbeddedFiles&) = delete;
  EmbeddedFiles& operator=(const EmbeddedFiles&) = delete;
  // A view that lives as long as the object. A name that the build did not embed ends the program.
  std::string_view file(std::string_view name) const;
  const std::vector<std::pair<std::string_view, std::string_view>>& all() const { return files_; }

 private:
  std::string joined_;
  std::vector<std::pair<std::string_view, std::string_view>> files_;  // name, content
};

}  // namespace scankit
