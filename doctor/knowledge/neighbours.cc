// SPDX-License-Identifier: Apache-2.0
#include "doctor/knowledge/neighbours.h"

#include <yaml-cpp/yaml.h>

extern "C" const char scankit_knowledge_neighbours[], scankit_knowledge_neighbours_end[];

namespace scankit {
namespace {

std::vector<NeighbourPair> read_pairs() {
  std::vector<NeighbourPair> rows;
  const YAML::Node root =
      YAML::Load(std::string(scankit_knowledge_neighbours, scankit_knowledge_neighbours_end));
  for (const auto& row : root["pairs"])
    rows.push_back({row["package"].as<std::string>(), row["releases"].as<std::string>(),
                    row["with"].as<std::string>(), row["takes"].as<std::string>()});
  return rows;
}

}  // namespace

const std::vector<NeighbourPair>& neighbour_pairs() {
  static const std::vector<NeighbourPair> rows = read_pairs();
  return rows;
}

}  // namespace scankit
