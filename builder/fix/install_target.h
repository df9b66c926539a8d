// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "builder/compile/build.h"
#include "builder/fix/transaction.h"
#include "builder/installer/installer.h"
#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"
#include "doctor/probes/python/python.h"

// Where a fix puts its files, and whether this user may write there; for an environment of a uv project, also
// the record in the project, without which the next `uv sync` would remove the module again.
namespace scankit::fix {

// Where a module goes: an import folder, and beside it the folder that remembers what was changed.
struct InstallTarget {
  std::string base;  // the environment's prefix, the user base, or DIR; <base>/.scankit is the state folder
  std::string site;  // the folder that gets the module
  std::string how_to_reach;  // for a DIR that is on no import path: the line that puts it there in this shell
  std::string for_good;      // and the one that does so in every new shell
  bool elsewhere = false;    // not the environment itself: only our own files are put there
  std::string why;           // where nobody named it: why it is not the environment itself
};

// `target` is "user", a directory, or "". With "" it is the environment's own site-packages where this
// user may write there; else the user site, if this Python looks at it; else a directory of the user's for
// this environment alone.
Result<InstallTarget> choose_place(const Host& host, const Python& python, const std::string& target);

// For root in another user's files: running them, or obeying a journal there, gives that user root's rights.
Error foreign_place(const probes::ForeignCode& foreign);
Error foreign_journal(const probes::ForeignCode& foreign);

// Refuses what would fail later: a place that cannot be written, one that another user owns, or a state
// directory on another file system. Creates nothing.
Result<void> check_place(const InstallTarget& place);

// A line that puts the folder first on Python's path, in the words of the user's shell ($SHELL).
std::string path_line(const std::string& shell, const std::string& folder);
// The line that has every new shell of that kind run `line`.
std::string start_line(const std::string& shell, const std::string& line);

// Whether a file may be moved away, wherever it is: its directory must be writable, and root leaves other
// users' files where they are.
Result<void> may_move(const Host& host, const std::string& file);

// The interpreter to start for this environment: a venv's own bin/python, not the file that it links to.
std::string interpreter_of(const Python& python);

// The module as a wheel, the same bytes from the same module.
std::string wheel_bytes(const compile::BuiltModule& built);
// The wheel's path in the project: PROJECT/.scankit/wheels/NAME.whl.
std::string project_wheel(const std::string& project, const compile::BuiltModule& built);

// Adds a source entry for each wheel to pyproject.toml and brings uv.lock up to date if that is possible. A
// failure is a note and not an Error, since the environment is repaired all the same.
void add_to_project(const installer::Installer& uv, const std::string& project,
                    const std::vector<std::string>& wheels, int lock, std::vector<std::string>& notes);

}  // namespace scankit::fix
