// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/python/python_text.h"

#include <algorithm>

#include "doctor/base/files.h"

namespace scankit {

Result<std::string> read_head(const Host& host, const std::string& path, std::size_t limit) {
  SCANKIT_TRY(const auto source, host.open(path));
  std::string bytes(static_cast<std::size_t>(std::min<std::uint64_t>(limit, source->size())), '\0');
  SCANKIT_CHECK(source->read(0, bytes.data(), bytes.size()));
  return bytes;
}

bool is_regular_file(const Host& host, const std::string& path) {
  const auto info = host.stat(path);
  return info && info->kind == FileKind::Regular;
}

std::string working_directory(const Host& host) { return host.is_live() ? current_directory() : ""; }

std::string absolute_path(const Host& host, const std::string& path) {
  if (path.starts_with('/')) return path_normalize(path);
  const std::string directory = working_directory(host);
  return path_normalize(path_join(directory.empty() ? "/" : directory, path));
}

// Not a full reader of escapes: the backslash is dropped and the next character kept, so that "\n" becomes
// "n". A triple-quoted literal comes out empty, and one with a prefix is not recognised.
std::optional<std::string> python_string_literal(std::string_view text, std::size_t& at) {
  if (at >= text.size() || (text[at] != '\'' && text[at] != '"')) return std::nullopt;
  const char quote = text[at];
  std::string value;
  for (std::size_t i = at + 1; i < text.size() && text[i] != '\n'; ++i) {
    if (text[i] == quote) {
      at = i + 1;
      return value;
    }
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    value += text[i];
  }
  return std::nullopt;
}

}  // namespace scankit
