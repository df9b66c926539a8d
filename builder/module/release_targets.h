// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "builder/module/target.h"

namespace scankit {

// One part of the shipped module: what one compiler makes of it. The parts' targets are sorted and disjoint.
struct ReleasePart {
  std::string toolchain;  // the id of a WheelToolchain
  std::vector<Target> targets;
};
// Every architecture from sm_60 to the newest that any of the pinned compilers knows.
const std::vector<ReleasePart>& release_parts();

}  // namespace scankit
