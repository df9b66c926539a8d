// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "builder/compile/build.h"
#include "builder/installer/installer.h"

// `uv sync` makes an environment what its project says, and takes out the rest: a fix must stand there too.
namespace scankit {

// The module as a wheel, the same bytes from the same module.
std::string wheel_bytes(const BuiltModule& built);
// Where it lies for the project, below a folder of ours.
std::string project_wheel(const std::string& project, const BuiltModule& built);

// A source entry for each wheel in pyproject.toml, and uv.lock brought up to it where that can be done here.
// What could not is a note: the environment is repaired all the same.
void add_to_project(const Installer& uv, const std::string& project, const std::vector<std::string>& wheels,
                    int lock, std::vector<std::string>& notes);

}  // namespace scankit
