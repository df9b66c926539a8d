// SPDX-License-Identifier: Apache-2.0
#include "doctor/knowledge/importers.h"

#include <yaml-cpp/yaml.h>

extern "C" const char scankit_knowledge_importers[], scankit_knowledge_importers_end[];

namespace scankit {
namespace {

KnownImporters read_importers() {
  KnownImporters known;
  const YAML::Node root =
      YAML::Load(std::string(scankit_knowledge_importers, scankit_knowledge_importers_end));
  for (const auto& row : root["packages"]) known.packages.push_back(row["package"].as<std::string>());
  for (const auto& row : root["source_folders"])
    known.source_folders.push_back(row["folder"].as<std::string>());
  return known;
}

}  // namespace

const KnownImporters& known_importers() {
  static const KnownImporters known = read_importers();
  return known;
}

}  // namespace scankit
