// SPDX-License-Identifier: Apache-2.0
#include "doctor/knowledge/python_names.h"

#include <algorithm>
#include <string>
#include <vector>

#include "doctor/base/embedded.h"

SCANKIT_EMBEDDED(scankit_knowledge_python_names);

namespace scankit::knowledge {
namespace {

// "torch.library register_fake 2.4 -": sorted by bytes, so that a row is found by its first two words.
const std::vector<std::string_view>& rows() {
  static const std::string text = SCANKIT_UNPACKED(scankit_knowledge_python_names);
  static const std::vector<std::string_view> lines = [] {
    std::vector<std::string_view> out;
    for (std::string_view rest = text; !rest.empty();) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      if (end > 0 && rest.front() != '#') out.push_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return out;
  }();
  return lines;
}

std::string_view bound(std::string_view word) { return word == "-" ? std::string_view() : word; }

std::optional<ReleasesOfName> row_of(std::string_view module, std::string_view name) {
  const std::string key = std::string(module) + ' ' + std::string(name) + ' ';
  const auto at = std::ranges::lower_bound(rows(), std::string_view(key));
  if (at == rows().end() || !at->starts_with(key)) return std::nullopt;
  const std::string_view span = at->substr(key.size());
  const std::size_t blank = span.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  return ReleasesOfName{bound(span.substr(0, blank)), bound(span.substr(blank + 1))};
}

}  // namespace

// A name may be that of a module, and what a module of a package defines is listed only with the package that hands it
// on, if that has it in the same releases: torch.nn has the row for torch.nn.modules.normalization.RMSNorm.
std::optional<ReleasesOfName> releases_of_name(std::string_view module, std::string_view name) {
  if (auto own = row_of(module, name)) return own;
  if (auto part = releases_of_module(std::string(module) + '.' + std::string(name))) return part;
  for (std::string_view above = module; !releases_of_module(above);) {
    const std::size_t dot = above.rfind('.');
    if (dot == std::string_view::npos) break;
    above = above.substr(0, dot);
    if (auto handed_on = row_of(above, name)) return handed_on;
  }
  return std::nullopt;
}

std::optional<ReleasesOfName> releases_of_module(std::string_view module) { return row_of(module, "*"); }

}  // namespace scankit::knowledge
