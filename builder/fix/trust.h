// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <set>
#include <string>
#include <vector>

#include "builder/fix/journal.h"

// An environment travels: in archives, in images, on shared disks. A `.scankit` in it travels along, so what
// it says may come from somebody else. scankit acts on it only if this user or root wrote it, and only if it
// names what a fix of this environment could have written.
namespace scankit {

// Errc::PermissionDenied if the directory is a link, belongs to somebody else, or may be written by others.
// check_own_state() checks the state directory and everything directly in its three directories. A directory
// that does not exist passes.
Result<void> check_own_folder(const std::string& folder);
Result<void> check_own_state(const StateFolder& state);

// Digits only, four or more: it becomes a part of paths that are removed.
bool is_journal_id(const std::string& id);

// Errc::Malformed if the journal names a path that no fix of this environment writes. Whatever a fix stages
// and saves is in its own directories; what it places is in the environment, or is the record of the project
// around it; and what it moved away from other places is something that Python imports.
Result<void> check_journal(const StateFolder& state, const Journal& journal);

// The files outside of the environment, with links resolved as they are now, that undoing these journals
// would touch. Whoever wrote a journal chose them, so the user has to agree.
std::set<std::string> outside_of(const StateFolder& state, const std::vector<Journal>& journals);

// Whether the way from `root` to root/path leads over a symbolic link. `checked` keeps the directories
// without a link between calls for the same root.
bool passes_a_link(const std::string& root, const std::string& path, std::set<std::string>& checked);

}  // namespace scankit
