// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "doctor/model/snapshot.h"

namespace scankit {

// What this user can change the environment with. A command that is printed must run here.
struct Installers {
  bool known = false;     // nobody asked: a stored snapshot of before, an unpacked root
  std::string uv;         // the file that `uv` on PATH is; "" for none
  std::string conda;      // "conda", "mamba" or "micromamba": the first that is on PATH; "" for none
  std::string base_pip;   // the interpreter whose pip (22.3 or newer) serves an environment without one
  std::string ensurepip;  // the standard library's, which Debian keeps in a package of its own; "" for none
  std::string site;       // the folder that an installer writes to
  std::string owner;      // who has to run it, by name or number, where this user may not write to `site`
  std::string pip_user;   // the variable or file by which pip installs for the user alone; "" for none
};
// Before a pip command that changes a venv, which refuses --user whoever asks for it: "PIP_USER=0 ", or "".
std::string pip_prefix(const Installers& here, const Python& python);

// They travel among the snapshot's `environment`, under names that no variable can have ("installer: uv").
Installers installers_of(const Snapshot& snapshot);
void set_installers(Snapshot& snapshot, const Installers& found);

}  // namespace scankit
