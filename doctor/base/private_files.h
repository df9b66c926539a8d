// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "doctor/base/result.h"

// Files that are trusted because nobody else can have written them: caches, and the compilers in them. A
// hash next to the bytes would prove nothing, because an attacker who plants the bytes writes the hash
// too. The rule is pip's, applied to every user: the owner must be this user or root, and neither the
// group nor others may write.
namespace scankit {

// Checks a directory, following links: ~/.cache is a link on many clusters. Errc::NotFound:
// nothing is there.
Result<void> check_private_folder(const std::string& path);
// Checks a file or directory inside a private one. A link is refused: its target may belong to anybody.
Result<void> check_private_entry(const std::string& path);
// Reads a regular file by the same rule. It judges the open descriptor, so that nobody can exchange the
// file between the check and the read, and it never waits for a FIFO.
Result<std::string> read_private_file(const std::string& path, std::size_t limit);
// Creates the missing directories of the path with mode 0700, whatever the umask. Existing ones keep
// their mode; they are judged by check_private_folder() when they are used.
Result<void> make_private_folders(const std::string& path);
// Takes the right to write from the group and from others, for all that is below a folder of ours: installers
// obey the umask, which is 002 on many machines.
Result<void> make_tree_private(const std::string& folder);

}  // namespace scankit
