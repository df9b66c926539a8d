// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/base/result.h"

namespace scankit {

// One change of an environment, made of renames, so that a kill leaves it undone or done. Both directions may
// be repeated: whoever finds a half-finished list runs it again from its end.
struct Operation {
  enum class Kind {
    Place,    // staged -> target, where nothing was
    Save,     // target -> backup: a file of the user's steps aside
    Replace,  // the two in one: the name never dangles
    Tree,  // the folder `target` is left to an installer; `backup`, first made as `staged`, is its old state
    Keep   // the file `target` is left to a program; `backup` is a copy, "" where there was none
  };
  Kind kind = Kind::Place;
  std::string target, staged, backup;
  std::string sha256;  // of what is placed, or of what the program left; empty for a folder
};

Result<void> apply(const Operation& operation);
// `notes` gets a line for what could not be as before, or was put somewhere.
Result<void> undo(const Operation& operation, std::vector<std::string>& notes);
// Errc::Conflict where undoing would lose something: the placed file was changed since, or the saved one's
// place is taken again. Looks only.
Result<void> can_undo(const Operation& operation);
// Whether undo(operation) would let the file be, since somebody edited it after the fix.
bool was_edited(const Operation& operation);

const char* kind_name(Operation::Kind kind);  // "place", "save", "replace", "tree", "keep"

}  // namespace scankit
