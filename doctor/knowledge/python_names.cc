// SPDX-License-Identifier: Apache-2.0
#include "doctor/knowledge/python_names.h"

#include <algorithm>
#include <string>
#include <vector>

#include "doctor/base/embedded.h"

SCANKIT_EMBEDDED(scankit_knowledge_python_names);
SCANKIT_EMBEDDED(scankit_knowledge_standard_library);

namespace scankit::knowledge {
namespace {

using Rows = std::vector<std::string_view>;

Rows rows_in(std::string_view text) {
  Rows out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (end > 0 && text.front() != '#') out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// "torch.library register_fake 2.4 -": sorted by bytes, so that a row is found by its first two words.
const Rows& of_packages() {
  static const std::string text = SCANKIT_UNPACKED(scankit_knowledge_python_names);
  static const Rows rows = rows_in(text);
  return rows;
}

const Rows& of_python() {
  static const std::string text = SCANKIT_UNPACKED(scankit_knowledge_standard_library);
  static const Rows rows = rows_in(text);
  return rows;
}

// The first row that begins with `start`; "" for none.
std::string_view first_row(const Rows& rows, std::string_view start) {
  const auto at = std::ranges::lower_bound(rows, start);
  return at != rows.end() && at->starts_with(start) ? *at : std::string_view();
}

std::string_view bound(std::string_view word) { return word == "-" ? std::string_view() : word; }

std::optional<ReleasesOfName> row_of(std::string_view module, std::string_view name) {
  const std::string key = std::string(module) + ' ' + std::string(name) + ' ';
  const Rows& rows = is_of_python(module.substr(0, module.find('.'))) ? of_python() : of_packages();
  const std::string_view row = first_row(rows, key);
  if (row.empty()) return std::nullopt;
  const std::string_view span = row.substr(key.size());
  const std::size_t blank = span.find(' ');
  if (blank == std::string_view::npos || span == "- -") return std::nullopt;
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

bool is_of_python(std::string_view top) { return !first_row(of_python(), std::string(top) + " * ").empty(); }

bool is_package_with_names(std::string_view top) {
  const std::string name(top);
  return !first_row(of_packages(), name + ' ').empty() || !first_row(of_packages(), name + '.').empty();
}

}  // namespace scankit::knowledge
