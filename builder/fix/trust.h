// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <set>
#include <string>
#include <vector>

#include "builder/fix/journal.h"

// An environment travels: in archives, in images, on shared disks. The `.scankit` in it came with it, so that
// it is data of whoever wrote it and no order of ours: it is acted on only where we wrote it, and only where
// it names what a fix of this environment could have written.
namespace scankit {

// Errc::PermissionDenied where the folder, or one of those in it that is there, is a link, belongs to
// somebody else, or may be written by others. A folder that does not exist is nobody's.
Result<void> check_own_folder(const std::string& folder);
Result<void> check_own_state(const StateFolder& state);

// Digits only, four or more: it becomes a part of paths that are removed.
bool is_journal_id(const std::string& id);

// Errc::Malformed where the journal names a path that no fix of this environment writes: everything it stages
// and saves lies in its own folders, what it places lies in the environment (or is the record of the project
// around it), and what it moved away from elsewhere is something that Python imports.
Result<void> check_journal(const StateFolder& state, const Journal& journal);

// The files outside of the environment, as the disk has them now, that undoing these would touch: whoever
// wrote the journal chose them, so that the user has to agree.
std::set<std::string> outside_of(const StateFolder& state, const std::vector<Journal>& journals);

// Whether the way from `root` to root/path leads over a symbolic link; `checked` keeps the folders that do
// not, between calls for one root.
bool passes_a_link(const std::string& root, const std::string& path, std::set<std::string>& checked);

}  // namespace scankit
