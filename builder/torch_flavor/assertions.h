// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "builder/torch_flavor/environment.h"

namespace scankit {

// What a finished module of the torch flavor must be, read back with the doctor's readers and resolved as the
// loader of this environment would after `import torch`: it needs torch's libraries and the C++ and C
// run-time libraries alone, has torch's string ABI, and every name and version that it needs is there. What
// holds for both flavors is assert_module's.
Result<void> assert_torch_module(const Host& host, const Snapshot& snapshot,
                                 const TorchEnvironment& environment, const std::string& module,
                                 const std::string& path);

}  // namespace scankit
