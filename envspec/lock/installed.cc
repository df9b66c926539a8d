// SPDX-License-Identifier: Apache-2.0
#include "envspec/lock/installed.h"

#include <algorithm>
#include <map>

#include "doctor/probes/extensions/audit_files.h"
#include "doctor/probes/python/python_text.h"

namespace scankit {

PlacedLibraries placed_libraries(const Host& host, const Snapshot& snapshot) {
  const InstalledLibraries installed = find_installed_libraries(host, snapshot);
  std::map<std::string, std::pair<std::size_t, std::string>> first;  // inner -> place of its folder, path
  for (const std::string& file : installed.files) {
    // One folder may lie in another (a project below site-packages): the innermost one is what import uses.
    std::size_t place = installed.folders.size(), length = 0;
    for (std::size_t i = 0; i < installed.folders.size(); ++i)
      if (installed.folders[i].size() > length && file.starts_with(installed.folders[i] + "/")) {
        place = i;
        length = installed.folders[i].size();
      }
    if (length == 0) continue;
    const auto [at, fresh] = first.try_emplace(file.substr(length + 1), place, file);
    if (!fresh && place < at->second.first) at->second = {place, file};
  }
  PlacedLibraries placed;
  placed.unreadable = installed.unreadable;
  for (auto& [inner, found] : first) {
    const auto owner = installed.owners.find(found.second);
    placed.libraries.push_back(
        {found.second, inner, owner == installed.owners.end() ? "" : normalized_name(owner->second)});
  }
  return placed;
}

}  // namespace scankit
