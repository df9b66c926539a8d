// SPDX-License-Identifier: Apache-2.0
#include "doctor/knowledge/yaml_text.h"

#include <yaml-cpp/yaml.h>

namespace scankit {

std::string yaml_text(const YAML::Node& node) {
  return node.IsDefined() && node.IsScalar() ? node.as<std::string>() : "";
}

}  // namespace scankit
