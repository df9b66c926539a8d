// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "doctor/model/snapshot.h"

// Facts about what a run was to look at. They are kept among the snapshot's variables, below names that no
// shell can set, so that a stored snapshot carries them and an older scankit still reads it.
namespace scankit {

// What --require, or the policy, demands of the environment.
struct Requirement {
  std::string name;   // of a module or a distribution, as the user wrote it
  std::string found;  // "module", "distribution", "absent"; "not-read" where nobody could look
  std::string path;   // of the file or folder that it is; of an absent one: what is there in its place
};
inline constexpr const char* kRequired = "scankit.required";
void set_requirements(Snapshot& snapshot, const std::vector<Requirement>& required);
std::vector<Requirement> requirements(const Snapshot& snapshot);

// The audit covers only the extensions that link torch or CUDA: what doctor looks at unless told more.
void set_audit_of_linked(Snapshot& snapshot);
bool audit_of_linked(const Snapshot& snapshot);

// Neither PyTorch nor a compiled extension that links it or CUDA is in the environment: whatever was asked of
// them is not answered. False where something else was looked at: a log, named files, a named folder of
// sources, what was required.
bool nothing_to_check(const Snapshot& snapshot);

// What this user can change the environment with. A command that is printed must run here.
struct Installers {
  bool known = false;  // nobody asked: a stored snapshot of before, an unpacked root
  std::string uv;      // the file that `uv` on PATH is; "" for none
  std::string
      conda;  // "conda", "mamba" or "micromamba", the first on PATH; else $CONDA_EXE or $MAMBA_EXE; ""
  std::string base_pip;   // the interpreter whose pip (22.3 or newer) serves an environment without one
  std::string ensurepip;  // the standard library's, which Debian keeps in a package of its own; "" for none
  std::string site;       // the folder that an installer writes to
  std::string owner;      // who has to run it, by name or number, where this user may not write to `site`
  std::string pip_user;   // the variable or file by which pip installs for the user alone; "" for none
  std::string
      pip_hidden;  // what of the current directory `python -m pip` would run in its place; "" for nothing
};
// Before a command with `python -m pip`, which puts the current directory in front of sys.path: "cd / && " where something
// there would be run in the place of pip, or of what pip imports; or "".
std::string pip_folder(const Installers& here);
// Before a pip command that changes a venv, which refuses --user whoever asks for it: "PIP_USER=0 ", or "".
std::string pip_prefix(const Installers& here, const Python& python);

// The conda, mamba or micromamba that a command line begins with, as a shell takes it; "conda" where nobody asked which
// one is here, or none is.
std::string conda_word(const Installers& here);

// They travel among the snapshot's `environment`, under names that no variable can have ("installer: uv").
Installers installers_of(const Snapshot& snapshot);
void set_installers(Snapshot& snapshot, const Installers& found);

}  // namespace scankit
