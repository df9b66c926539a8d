// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"
#include "doctor/model/snapshot_variables.h"

// Two kinds of damage to an environment: a `scankit fix` that was interrupted, read from its journals, and
// an active environment whose Python cannot be used, with the command that makes it anew.
namespace scankit::probes {

// Fixes of this environment that did not come to their end, by the journals below `.scankit` of the prefix
// and of the folders on the path. Absent where all ended, or none was made.
Probed<std::vector<UnfinishedRepair>> probe_repairs(const Host& host, const Python& python);

// What to do about an environment whose Python cannot be used: a sentence, and the command that does it on
// this machine where there is one.
struct EnvironmentRepair {
  Message text;
  std::string command;
  Message hint() const { return command.empty() ? text : message("{}: {}", text, command); }
};
// A venv: made anew by uv (where uv made it and is on PATH) or by a Python of PATH that can make venvs,
// one of the venv's own release first.
// `--clear` empties the directory, so the packages have to be installed again; `text` says so.
EnvironmentRepair repair_of_venv(const Host& host, const std::string& folder);

// `why`: how looking for its Python ended. `origin`: "VIRTUAL_ENV", "./.venv", "CONDA_PREFIX".
BrokenEnvironment broken_environment(const Host& host, const std::string& origin, const std::string& folder,
                                     const Error& why);

// For commands that end with it: exit status 1.
Error error_of(const BrokenEnvironment& broken);

}  // namespace scankit::probes
