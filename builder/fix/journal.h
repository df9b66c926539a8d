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

// What one part of a fix changes in an environment, written down before it is changed:
// <base>/.scankit/journal/ID.json. The doctor reads the states too (doctor/probes/packages/repairs.cc), so
// new ones must be taught to it.
struct Journal {
  enum class State {
    Applying,   // found at a start: the fix was killed; it is undone
    Committed,  // what `scankit restore` undoes
    Undoing,    // found at a start: undoing goes on
    Undone
  };
  std::string id;   // "0001"
  std::string run;  // the first id of the `scankit fix` that it is a part of; restore takes back a whole run
  State state = State::Applying;
  std::string module, version;     // what was installed
  std::string note;                // why it was undone
  std::vector<std::string> steps;  // what was done and how it is undone, a line each, for people
  std::vector<Operation> operations;
};

// The folder <base>/.scankit of one environment, on the file system of its site-packages.
class StateFolder {
 public:
  explicit StateFolder(std::string base) : root_(std::move(base) + "/.scankit") {}
  const std::string& root() const { return root_; }
  std::string staging(const std::string& id) const { return root_ + "/staging/" + id; }
  std::string backup(const std::string& id) const { return root_ + "/backup/" + id; }

  // Takes up disk space while there is some, and release_room() frees it for the undoing: on a full disk the
  // undoing must still be able to write that it is done.
  Result<void> hold_room() const;
  void release_room() const;

  // All journals, oldest first; empty if there never was one. Errc::Malformed names a journal that cannot be
  // read, or an unfinished one that asks for something that no fix does. Errc::PermissionDenied if the
  // directory is not our own.
  Result<std::vector<Journal>> journals() const;
  // An id that no journal and no backup has.
  Result<std::string> next_id() const;
  // Replaces the journal atomically, so a kill leaves the state before or the one after.
  Result<void> write(const Journal& journal) const;

 private:
  std::string root_;
};

}  // namespace scankit
