// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/base/result.h"

namespace scankit {

// One change of an environment. It is made of renames, so that a kill leaves it undone or done. apply() and
// undo() may be repeated: a half-finished list is undone again from its end.
struct Operation {
  enum class Kind {
    Place,    // staged -> target, where nothing was
    Save,     // target -> backup: a file of the user's steps aside
    Replace,  // the two in one: the name never dangles
    Tree,  // the folder `target` is left to an installer; `backup`, first made as `staged`, is its old state
    Keep   // the file `target` is left to a program; `backup` is a copy, "" where there was none
  };
  Kind kind = Kind::Place;
  // Absolute paths on one file system; "" if the kind has none. `staged` is where a new file waits and where
  // undo() puts it back, or for Tree and Keep where the backup is made first. `backup` is where the old
  // state is kept.
  std::string target, staged, backup;
  std::string sha256;  // of what is placed, or of what the program left; empty for a folder
};

Result<void> apply(const Operation& operation);
// `notes` gets a line for each thing that could not be as before, or that was put somewhere else.
Result<void> undo(const Operation& operation, std::vector<std::string>& notes);
// Errc::Conflict if undoing would lose something: the placed file was changed since, or the place of the
// saved one is taken again. Changes nothing.
Result<void> can_undo(const Operation& operation);
// Whether undo() would leave the file alone, since somebody edited it after the fix. Keep only.
bool was_edited(const Operation& operation);

const char* kind_name(Operation::Kind kind);  // "place", "save", "replace", "tree", "keep"

}  // namespace scankit
