// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/host/host.h"
#include "doctor/model/target_facts.h"

namespace scankit {

// The environment that a command looks at: `requested` (--python), or the first of $VIRTUAL_ENV, ./.venv,
// $CONDA_PREFIX and PATH, scripts such as pyenv's shims looked through. The answer is the interpreter's own
// file: a venv's bin/python, no shim, no folder. `notes` gets a line for the choice, one for each Python of
// PATH that was passed over and why, and, where nothing was requested, one for each further Python that holds
// torch.
// What was requested and cannot be used is an Error of Errc::InvalidArgument (exit status 2). The first
// environment that is active is the one that is meant: where its Python cannot be used, the Error is one of
// Errc::ToolFailed (exit status 1), `broken` tells of it, and no other Python is taken in its place.
Result<std::string> choose_python(const Host& host, const std::optional<std::string>& requested,
                                  std::vector<std::string>& notes, BrokenEnvironment* broken = nullptr);

}  // namespace scankit
