// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "builder/compile/compile.h"
#include "builder/compile/explain.h"
#include "builder/toolchain/toolchain.h"

namespace scankit {

// What a finished module was made of, as JSON: inputs, compiler, images with their hashes. It lies inside the
// module and beside it. No path and no time, so that two machines write the same bytes.
struct ManifestInput {
  std::string flavor = "universal";
  const Explanation* explanation = nullptr;  // its images in the same order as `images`
  const std::vector<BuiltCode>* images = nullptr;
  // A compiler, and the targets that it made.
  struct Maker {
    const DeviceCompiler* compiler;
    std::vector<Target> targets;
  };
  std::vector<Maker> compilers;
};
std::string write_manifest(const ManifestInput& input);

// The manifest inside a module. If the file is not such a module, the Error says what it is instead.
Result<std::string> read_manifest(const std::string& path);
// Whether a module holds the images that its manifest names; Errc::Malformed with the first that is another.
Result<void> check_against_manifest(const std::string& path, const std::string& manifest);

}  // namespace scankit
