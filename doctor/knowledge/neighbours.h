// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace scankit {

// Two distributions that import each other, and which releases of `with` the releases of `package` take
// (neighbours.yaml). Ranges as PEP 440 writes them.
struct NeighbourPair {
  std::string package, releases, with, takes;
};
const std::vector<NeighbourPair>& neighbour_pairs();

}  // namespace scankit
