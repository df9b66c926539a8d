// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace scankit {

// A compiled extension module at the top level, and the project whose build makes it (built_modules.yaml).
struct CompiledModule {
  std::string module, project;
};
const std::vector<CompiledModule>& built_modules();

}  // namespace scankit
