// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "builder/fix/operation.h"

namespace scankit {

// What one fix changes in an environment, written down before it is changed. Lies in
// <base>/.scankit/journal/ID.json.
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

  // Room for the journal of an undoing, held while there is some: on a full disk the undoing must be able to
  // say that it is done.
  Result<void> hold_room() const;
  void release_room() const;

  // Oldest first; empty where there never was one. Errc::Malformed names a journal that cannot be read, or an
  // unfinished one that asks for what no fix does; Errc::PermissionDenied where the folder is not our own.
  Result<std::vector<Journal>> journals() const;
  Result<std::string> next_id() const;
  Result<void> write(const Journal& journal) const;

 private:
  std::string root_;
};

}  // namespace scankit
