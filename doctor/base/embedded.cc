// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/embedded.h"

#include <zstd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace scankit {

std::string unpacked(const char* begin, const char* end) {
  const auto size = static_cast<std::size_t>(end - begin);
  const unsigned long long length = ZSTD_getFrameContentSize(begin, size);
  if (length == ZSTD_CONTENTSIZE_ERROR || length == ZSTD_CONTENTSIZE_UNKNOWN) std::abort();
  std::string file(length, '\0');
  if (ZSTD_decompress(file.data(), file.size(), begin, size) != length) std::abort();
  return file;
}

// The format is that of ci/cmake/join.cmake.
EmbeddedFiles::EmbeddedFiles(std::string joined) : joined_(std::move(joined)) {
  std::string_view list = joined_;
  const auto list_end = list.find("\n\n");
  if (list_end == std::string_view::npos) std::abort();
  std::string_view contents = list.substr(list_end + 2);
  list = list.substr(0, list_end + 1);
  while (!list.empty()) {
    const std::string_view line = list.substr(0, list.find('\n'));
    list.remove_prefix(line.size() + 1);
    std::size_t size = 0;
    const auto read = std::from_chars(line.data(), line.data() + line.size(), size);
    const auto name = line.find(' ');
    if (read.ec != std::errc() || name == std::string_view::npos || size > contents.size()) std::abort();
    files_.emplace_back(line.substr(name + 1), contents.substr(0, size));
    contents.remove_prefix(size);
  }
  if (!contents.empty()) std::abort();
}

std::string_view EmbeddedFiles::file(std::string_view name) const {
  const auto found = std::ranges::find(files_, name, &std::pair<std::string_view, std::string_view>::first);
  if (found == files_.end()) std::abort();
  return found->second;
}

}  // namespace scankit
