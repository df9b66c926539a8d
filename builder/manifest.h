// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "builder/device_compiler.h"
#include "builder/image.h"

namespace scankit {

// What a finished module was made of, as JSON: inputs, compiler, images with their hashes. It lies inside the
// module and beside it. No path and no time, so that two machines write the same bytes.
struct ManifestInput {
  std::string module;
  std::string_view host_module, device_source;
  const std::vector<BuiltCode>* images = nullptr;
  struct Maker {
    const DeviceCompiler* compiler;
    std::vector<Target> targets;
  };
  std::vector<Maker> compilers;
};
std::string write_manifest(const ManifestInput& input);

}  // namespace scankit
