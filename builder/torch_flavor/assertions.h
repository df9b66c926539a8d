// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "builder/torch_flavor/environment.h"

namespace scankit {

// Checks what a finished module of the torch flavor must be. The file is read back with the doctor's readers
// and resolved as the loader of this environment would do it after `import torch`: it needs torch's libraries
// and the C++ and C run-time libraries and no others, it has torch's string ABI, and every symbol and version
// that it needs exists. assert_module() checks what both flavors promise.
Result<void> assert_torch_module(const Host& host, const Snapshot& snapshot,
                                 const TorchEnvironment& environment, const std::string& module,
                                 const std::string& path);

}  // namespace scankit
