// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"
#include "doctor/model/snapshot_variables.h"

// From what a user names to the file of an interpreter, through links, wrapper scripts and pyenv's shims.
// Scripts are read as text and never run.
namespace scankit::probes {

// The interpreter's own file name, and the scripts that were looked through. A venv's bin/python stays that
// link, because it resolves to the interpreter of the base.
struct Interpreter {
  std::string path;
  std::vector<std::string> through;
};

// What a user may name: an interpreter, a name on PATH, the folder of a venv or a prefix, a shim. Every way
// in which that is no interpreter is an Error of its own.
Result<Interpreter> find_interpreter(const Host& host, const std::string& requested);

// Where a shell script hands over to: the program of its last `exec`, if that can be told without running it.
// `script` is its path, which "$0" and "${0%/*}" stand for.
std::optional<std::string> exec_target(std::string_view text, const std::string& script);
// The file that pyenv would run for `program`; "" where it would go on along PATH ("system").
Result<std::string> pyenv_target(const Host& host, std::string_view shim_text, const std::string& program);
// Folders of PATH, in order, without those of pyenv's shims where `skip_shims`.
std::vector<std::string> path_folders(const Host& host, bool skip_shims = false);

// The probe of the interpreter: identity, version, suffixes and sys.path, all from files. python_shim.cc
// finds the file, python_layout.h its installation, sys_path.h its import path; python.cc joins them.
// What the bytes of an interpreter, or of its libpython, say by themselves.
struct PythonBinary {
  bool elf = false;
  bool python = false;  // starts or holds a CPython
  std::string machine;  // "x86_64"; empty for one that no torch exists for
};
Result<PythonBinary> read_python_binary(const Host& host, const std::string& path);

// Release numbers of `series` ("3.11") that stand in the file as strings of their own: "3.11.7", "3.13.0rc2".
// The copyright and library versions that stand there too are of other series.
std::vector<std::string> release_strings(const Host& host, const std::string& path, std::string_view series);
// True where the file holds the bytes between two NULs.
bool holds_string(const Host& host, const std::string& path, std::string_view text);

// The interpreter and its import path, from files: nothing is started. `requested` is an interpreter, or
// anything that find_interpreter() leads to one. Failed, with the reason, where it is not a CPython 3 that
// could start.
Probed<Python> probe_python(const Host& host, const std::string& requested);
// The same interpreter, and an Error where probe_python() would fail.
Result<Interpreter> find_usable_interpreter(const Host& host, const std::string& requested);

// Which Python a command means: on the running machine, or in an unpacked root file system or image
// (--root). Also the rule that root does not import what another user could have written.

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
                                  std::vector<Message>& notes, BrokenEnvironment* broken = nullptr);

}  // namespace scankit::probes
