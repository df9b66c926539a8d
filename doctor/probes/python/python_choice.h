// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"
#include "doctor/model/target_facts.h"

// Which Python a command means: on the running machine, or in an unpacked root file system or image
// (--root). Also the rule that root does not import what another user could have written.

namespace scankit {

// The absolute path of `folder`, or why it is no root file system.
Result<std::string> root_folder(const std::string& folder);

struct PlacedPython {
  std::string path, origin;  // an interpreter or an environment's folder, as the examined system names it
};
// Where images keep their Pythons. No variable says which one is active: an image's PATH is in its
// configuration, not in its files.
std::vector<PlacedPython> pythons_in_root(const Host& host);

// A file or folder of another user, whose code root would run (ARCHITECTURE.md, decision 17).
struct ForeignCode {
  std::string path;
  unsigned uid = 0;
};

// Where this process is root and the file is not root's; nothing for another user, whom the kernel keeps from
// doing more than he may.
std::optional<ForeignCode> foreign_to_root(const Host& host, const std::string& path);

// The first that this interpreter runs as it starts, or has on its path: the executable, prefixes, folders of
// sys.path, .pth files, sitecustomize.py.
std::optional<ForeignCode> foreign_code(const Host& host, const Python& python);

// And what imports of torch and of the modules under diagnosis would run.
std::optional<ForeignCode> foreign_code(const Host& host, const Snapshot& snapshot);

// The environment that a command looks at: `requested` (--python), or the first of $VIRTUAL_ENV, ./.venv,
// $CONDA_PREFIX and PATH, scripts such as pyenv's shims looked through. The answer is the interpreter's own
// file: a venv's bin/python, no shim, no folder. `notes` gets a line for the choice, one for each Python of
// PATH that was passed over and why, and, where nothing was requested, one for each further Python that holds
// torch. What was requested and cannot be used is an Error of Errc::InvalidArgument (exit status 2). The
// first environment that is active is the one that is meant: where its Python cannot be used, the Error is
// one of Errc::ToolFailed (exit status 1), `broken` tells of it, and no other Python is taken in its place.
Result<std::string> choose_python(const Host& host, const std::optional<std::string>& requested,
                                  std::vector<std::string>& notes, BrokenEnvironment* broken = nullptr);

}  // namespace scankit
