// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "doctor/base/result.h"

// What a folder holds, as tree.cc remembers it.
// A folder as it was before a program that is not ours changed it: pip, uv or conda. Which files they touch
// nobody can tell before, so each file gets a second name in the backup. That costs no bytes and keeps owner,
// times and links to a cache. Installers replace files and do not write into them; what they are known to
// rewrite in place (.pth files, their own records) is copied.

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

struct TreeChanges {
  std::vector<std::string> replaced, removed;  // by the installer; the old ones lie in the backup
  std::vector<std::string> added, added_folders;
  std::vector<std::string> rewritten;  // in place, so that the old bytes are lost
  bool empty() const {
    return replaced.empty() && removed.empty() && added.empty() && rewritten.empty() && added_folders.empty();
  }
};

bool is_there(const std::string& path);  // also a link that leads nowhere

// `copy` must not exist; it is on the disk when this returns. Left out: state folders of ours, __pycache__,
// and in the root conda's pkgs and envs.
Result<void> save_tree(const std::string& root, const std::string& copy);

// After the installer: what it changed, also written into the copy, so that whoever undoes it later leaves
// alone what came since.
Result<TreeChanges> note_changes(const std::string& root, const std::string& copy);

// Lets go of the files that were not changed. To be called when the change has come to stay; may be repeated.
void drop_unchanged(const std::string& copy);

// Puts the old files back. What the installer brought goes into `aside`: by the list of note_changes, or
// where that was never written, whatever the copy does not have. May be repeated. Answers with the files
// whose old bytes are lost.
Result<std::vector<std::string>> restore_tree(const std::string& root, const std::string& copy,
                                              const std::string& aside);
// Whether the installer's end was never noted: what is then found may have come later, from somebody else.
bool ended_unnoted(const std::string& copy);

// Errc::Conflict where a file that would be put back or taken away was changed since; `ours`: what the same
// fix did to it afterwards.
Result<void> can_restore_tree(const std::string& root, const std::string& copy,
                              const std::set<std::string>& ours);
// How many files the noted changes concern.
std::size_t changed_files(const std::string& copy);

}  // namespace scankit
