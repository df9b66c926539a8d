// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "doctor/base/result.h"

// What is believed because nobody else can have written it: caches, and the compilers in them. A hash beside
// the bytes proves nothing there, for whoever plants the bytes writes the hash too. The rule is pip's, for
// every user: the owner is this user or root, and neither the group nor others may write.
namespace scankit {

// A folder, through links: ~/.cache is a link on many clusters. Errc::NotFound: nothing there.
Result<void> check_private_folder(const std::string& path);
// A file or folder below one. A link is refused: its target may be anybody's.
Result<void> check_private_entry(const std::string& path);
// A regular file by the same rule, judged by the descriptor that is read. It never waits for a FIFO.
Result<std::string> read_private_file(const std::string& path, std::size_t limit);
// What is missing of the path is made with mode 0700, whatever the umask; what is there stays as it is.
Result<void> make_private_folders(const std::string& path);
// Takes the right to write from the group and from others, for all that is below a folder of ours: installers
// obey the umask, which is 002 on many machines.
Result<void> make_tree_private(const std::string& folder);

}  // namespace scankit
