// SPDX-License-Identifier: Apache-2.0
#include "doctor/run/failing_interpreter.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "doctor/base/files.h"
#include "doctor/base/text.h"

namespace scankit {
namespace {

// The absolute path that ends at `end`: it begins behind white space, a quote or a bracket. Spaces in paths
// would need the quotes of a traceback; such a path is cut, and then matches no interpreter.
std::string_view path_before(std::string_view text, std::size_t end) {
  const auto before = text.find_last_of(" \t\n\r\"'([=:,`", end == 0 ? 0 : end - 1);
  const std::size_t start = before == std::string_view::npos ? 0 : before + 1;
  const std::string_view path = text.substr(start, end - start);
  return path.starts_with('/') ? path : std::string_view();
}

// Prefixes of environments that the output names by `mark`, the last one first: "/x" for
// "/x/lib/python3.11/site-packages/...". With `packages`, only where a directory of packages follows.
std::vector<std::string> prefixes(std::string_view output, std::string_view mark, bool packages) {
  constexpr std::size_t kMost = 256;
  std::vector<std::string> found;
  for (auto at = output.rfind(mark); at != std::string_view::npos && found.size() < kMost;
       at = at == 0 ? std::string_view::npos : output.rfind(mark, at - 1)) {
    const std::string prefix(path_before(output, at));
    const auto slash = output.find('/', at + mark.size());
    const bool follows = slash != std::string_view::npos && slash - at < mark.size() + 8 &&
                         (output.substr(slash).starts_with("/site-packages/") ||
                          output.substr(slash).starts_with("/dist-packages/"));
    if (prefix.empty() || (packages && !follows)) continue;
    if (std::ranges::find(found, prefix) == found.end()) found.push_back(prefix);
  }
  return found;
}

std::string prefix_of(const SeenInterpreter& seen) { return path_dirname(path_dirname(seen.path)); }

bool is_usable(const std::string& python) { return ::access(python.c_str(), X_OK) == 0; }

const SeenInterpreter* with_prefix(const std::vector<SeenInterpreter>& seen, const std::string& prefix) {
  for (const SeenInterpreter& each : seen)
    if (!each.other_root && prefix_of(each) == prefix && is_usable(each.path)) return &each;
  return nullptr;
}

// An interpreter that nobody saw, but whose packages are in the traceback.
std::optional<SeenInterpreter> below(const std::string& prefix) {
  for (const char* name : {"/bin/python3", "/bin/python"})
    if (is_usable(prefix + name)) {
      SeenInterpreter found;
      found.path = prefix + name;
      return found;
    }
  return std::nullopt;
}

bool is_identifier(std::string_view word) {
  if (word.empty() || is_digit(word.front())) return false;
  return std::ranges::all_of(word, [](char c) {
    return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

}  // namespace

std::optional<SeenInterpreter> failing_interpreter(const std::string& output,
                                                   const std::vector<SeenInterpreter>& seen) {
  const auto packages = prefixes(output, "/lib/python3", true);
  for (const std::string& prefix : packages)
    if (const SeenInterpreter* found = with_prefix(seen, prefix)) return *found;
  // "of binary: /x/bin/python" (torchrun).
  for (const std::string& prefix : prefixes(output, "/bin/python", false))
    if (const SeenInterpreter* found = with_prefix(seen, prefix)) return *found;
  for (const SeenInterpreter& each : seen)
    if (!each.other_root && is_usable(each.path)) return each;
  if (!seen.empty()) return std::nullopt;
  for (const std::string& prefix : packages)
    if (auto found = below(prefix)) return found;
  return std::nullopt;
}

std::string module_of_file(const std::string& file) {
  const auto at = file.rfind("-packages/");
  if (at == std::string::npos) return "";
  std::vector<std::string> parts = split(file.substr(at + 10), "/");
  parts.back() = parts.back().substr(0, parts.back().find('.'));
  return std::ranges::all_of(parts, is_identifier) ? join(parts, ".") : "";
}

std::vector<std::string> modules_at_death(const std::string& crashed_in,
                                          const std::vector<SeenInterpreter>& seen) {
  constexpr std::size_t kMost = 3;
  std::vector<std::string> files;
  for (const SeenInterpreter& each : seen)
    for (auto module = each.modules.rbegin(); module != each.modules.rend() && files.size() < kMost; ++module)
      if (crashed_in.empty() || path_basename(*module) == crashed_in) files.push_back(*module);
  return files;
}

}  // namespace scankit
