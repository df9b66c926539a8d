// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "doctor/base/result.h"

namespace scankit {

// One change of an environment, made of renames alone, so that a kill leaves it undone or done. Both
// directions may be repeated: whoever finds a half-finished list runs it again from its end.
struct Operation {
  enum class Kind {
    Place,   // staged -> target, where nothing was
    Save,    // target -> backup: a file of the user's steps aside
    Replace  // the two in one: the name never dangles
  };
  Kind kind = Kind::Place;
  std::string target, staged, backup;
  std::string sha256;  // of what is placed; empty for a folder
};

Result<void> apply(const Operation& operation);
Result<void> undo(const Operation& operation);
// Errc::Conflict where undoing would lose something: the placed file was changed since, or the saved one's
// place is taken again. Looks only.
Result<void> can_undo(const Operation& operation);

const char* kind_name(Operation::Kind kind);  // "place", "save", "replace"

}  // namespace scankit
