// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "builder/install/journal.h"
#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"
#include "doctor/probes/whose_code.h"

namespace scankit {

// Where a module goes: an import folder, and beside it the folder that remembers what was changed.
struct InstallPlace {
  std::string base;  // the environment's prefix, the user base, or DIR; <base>/.scankit is the state folder
  std::string site;  // the folder that gets the module
  std::string how_to_reach;  // for a DIR that is on no import path: the line that puts it there
};

// `target`: "" (the environment's own site-packages), "user", or a folder.
Result<InstallPlace> choose_place(const Host& host, const Python& python, const std::string& target);

// As root in another user's files: what they would make root do.
Error foreign_place(const ForeignCode& foreign);
Error foreign_journal(const ForeignCode& foreign);

// Refusals that must come before anything is made: not writable, foreign-owned, state folder on another file
// system. Creates nothing.
Result<void> check_place(const InstallPlace& place);

// Of a file that is to be moved away, wherever it lies: its folder can be written, and root leaves other
// users' files where they are.
Result<void> may_move(const Host& host, const std::string& file);

// The interpreter to start for this environment: a venv's own bin/python, not the file that it links to.
std::string interpreter_of(const Python& python);

}  // namespace scankit
