// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "builder/compile/build.h"
#include "builder/fix/journal.h"
#include "builder/installer/installer.h"
#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"
#include "doctor/probes/python/python_choice.h"

// `uv sync` makes an environment what its project says, and takes out the rest: a fix must stand there too.

namespace scankit {

// Where a module goes: an import folder, and beside it the folder that remembers what was changed.
struct InstallTarget {
  std::string base;  // the environment's prefix, the user base, or DIR; <base>/.scankit is the state folder
  std::string site;  // the folder that gets the module
  std::string how_to_reach;  // for a DIR that is on no import path: the line that puts it there in this shell
  std::string for_good;      // and the one that does so in every new shell
  bool elsewhere = false;    // not the environment itself: only our own files are put there
  std::string why;           // where nobody named it: why it is not the environment itself
};

// `target`: "user", a folder, or "": the environment's own site-packages where this user may write there,
// else the user site, where this Python looks at it, else a folder of the user's for this environment alone.
Result<InstallTarget> choose_place(const Host& host, const Python& python, const std::string& target);

// As root in another user's files: what they would make root do.
Error foreign_place(const ForeignCode& foreign);
Error foreign_journal(const ForeignCode& foreign);

// Refusals that must come before anything is made: not writable, foreign-owned, state folder on another file
// system. Creates nothing.
Result<void> check_place(const InstallTarget& place);

// A line that puts the folder first on Python's path, in the words of the user's shell ($SHELL).
std::string path_line(const std::string& shell, const std::string& folder);
// The line that has every new shell of that kind run `line`.
std::string start_line(const std::string& shell, const std::string& line);

// Of a file that is to be moved away, wherever it lies: its folder can be written, and root leaves other
// users' files where they are.
Result<void> may_move(const Host& host, const std::string& file);

// The interpreter to start for this environment: a venv's own bin/python, not the file that it links to.
std::string interpreter_of(const Python& python);

// The module as a wheel, the same bytes from the same module.
std::string wheel_bytes(const BuiltModule& built);
// Where it lies for the project, below a folder of ours.
std::string project_wheel(const std::string& project, const BuiltModule& built);

// A source entry for each wheel in pyproject.toml, and uv.lock brought up to it where that can be done here.
// What could not is a note: the environment is repaired all the same.
void add_to_project(const Installer& uv, const std::string& project, const std::vector<std::string>& wheels,
                    int lock, std::vector<std::string>& notes);

}  // namespace scankit
