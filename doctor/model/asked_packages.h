// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace scankit {

// A name given by --module that import takes for Python files: what is compiled lies inside it, or nothing
// is.
struct AskedPackage {
  std::string name, path;  // "torchvision", its folder; the file where it is a single one
};

}  // namespace scankit
