// SPDX-License-Identifier: Apache-2.0
#include "doctor/knowledge/built_modules.h"

#include <yaml-cpp/yaml.h>

extern "C" const char scankit_knowledge_built_modules[], scankit_knowledge_built_modules_end[];

namespace scankit {
namespace {

std::vector<CompiledModule> read_built_modules() {
  std::vector<CompiledModule> rows;
  const YAML::Node root =
      YAML::Load(std::string(scankit_knowledge_built_modules, scankit_knowledge_built_modules_end));
  for (const auto& row : root["modules"])
    rows.push_back({row["module"].as<std::string>(), row["project"].as<std::string>()});
  return rows;
}

}  // namespace

const std::vector<CompiledModule>& built_modules() {
  static const std::vector<CompiledModule> rows = read_built_modules();
  return rows;
}

}  // namespace scankit
