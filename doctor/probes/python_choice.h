// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/host/host.h"

namespace scankit {

// The environment that a command looks at: `requested` (--python), or the first interpreter of $VIRTUAL_ENV,
// ./.venv, $CONDA_PREFIX and PATH, scripts such as pyenv's shims looked through. The answer is the
// interpreter's own file: a venv's bin/python, no shim, no folder. `notes` gets a line for the choice, one
// for each source that was passed over and why, and, where nothing was requested, one for each further Python
// that holds torch.
Result<std::string> choose_python(const Host& host, const std::optional<std::string>& requested,
                                  std::vector<std::string>& notes);

}  // namespace scankit
