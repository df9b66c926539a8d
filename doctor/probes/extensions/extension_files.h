// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// Folders listed once, however many modules are looked for.
class FolderListings {
 public:
  explicit FolderListings(const Host& host) : host_(&host) {}
  // Empty where the folder cannot be listed, as import sees it.
  const std::vector<DirEntry>& of(const std::string& folder);
  // Folders that exist and could not be listed, each with the reason.
  const std::vector<std::string>& unreadable() const { return unreadable_; }

 private:
  const Host* host_;
  std::map<std::string, std::vector<DirEntry>> known_;
  std::vector<std::string> unreadable_;
};

// The copies of one module, with module, path, tag, sys_path_index, selected, why_not_selected and
// distribution set.
std::vector<Extension> find_copies(const Host& host, const Snapshot& so_far, const std::string& module,
                                   FolderListings& listings);

}  // namespace scankit
