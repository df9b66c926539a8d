// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "doctor/base/result.h"

// What a folder holds, as tree.cc remembers it.
namespace scankit {

struct TreeEntry {
  enum class Kind { File, Link, Folder, Gone } kind = Kind::File;
  std::uint64_t inode = 0, size = 0;
  std::int64_t mtime_ns = 0;
  bool copied = false;  // the backup has its bytes, not its inode
  bool operator==(const TreeEntry&) const = default;
};
using TreeList = std::map<std::string, TreeEntry>;  // by the path below the root

TreeEntry entry_of(const struct stat& info);
// Everything below `root` but what tree.h leaves out. A folder stands before what it holds.
Result<TreeList> list_tree(const std::string& root);

Result<void> write_tree_list(const std::string& path, const TreeList& list);
Result<TreeList> read_tree_list(const std::string& path);

}  // namespace scankit
