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

// A directory as it was before a program that is not ours changed it: pip, uv or conda. It is not known
// beforehand which files they touch, so each file gets a second name (a hard link) in the backup. That costs
// no bytes and keeps owner, times and links to a cache. It works because installers replace files and do not
// write into them; the few that they do write into (.pth files, their own records) are copied.
namespace scankit::fix {

// What identifies a file's old state: a new file has another inode, an edited one another size or time.
struct TreeEntry {
  enum class Kind { File, Link, Folder, Gone } kind = Kind::File;
  std::uint64_t inode = 0, size = 0;
  std::int64_t mtime_ns = 0;
  bool copied = false;      // the backup has its bytes, not its inode
  std::string sha256 = {};  // of a changed file whose old state would be copied, "" otherwise
};
using TreeList = std::map<std::string, TreeEntry>;  // by the path below the root

TreeEntry entry_of(const struct stat& info);
// Everything below `root` but what save_tree() leaves out. A directory comes before what is in it.
Result<TreeList> list_tree(const std::string& root);

// A list as a text file, one entry a line. Reading refuses a path that would lead out of the tree.
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

// Makes `copy`, which must not exist; it is on the disk when this returns. Left out are our own state
// directories, __pycache__, and at the root conda's pkgs and envs.
Result<void> save_tree(const std::string& root, const std::string& copy);

// After the installer: lists what it changed, and writes the list into the copy, so that a later undoing
// leaves alone what came since.
Result<TreeChanges> note_changes(const std::string& root, const std::string& copy);

// Removes the second names of unchanged files, once the change is to stay. May be repeated.
void drop_unchanged(const std::string& copy);

// Puts the old files back. What the installer brought goes into `aside`: the files on the list of
// note_changes(), or without that list everything that the copy does not have. May be repeated. Returns the
// files whose old bytes are lost.
Result<std::vector<std::string>> restore_tree(const std::string& root, const std::string& copy,
                                              const std::string& aside);
// Whether note_changes() never ran: what is found now may have come later, from somebody else.
bool ended_unnoted(const std::string& copy);

// Errc::Conflict if a file that would be put back or removed was changed since. `ours`: the paths that the
// same fix changed after the installer.
Result<void> can_restore_tree(const std::string& root, const std::string& copy,
                              const std::set<std::string>& ours);
// How many files the noted changes concern.
std::size_t changed_files(const std::string& copy);

}  // namespace scankit::fix
