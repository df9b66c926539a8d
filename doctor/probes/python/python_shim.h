// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/host/host.h"

// From what a user names to the file of an interpreter, through links, wrapper scripts and pyenv's shims.
// Scripts are read as text and never run.
namespace scankit {

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

}  // namespace scankit
