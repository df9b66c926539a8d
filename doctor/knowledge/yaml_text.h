// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace YAML {
class Node;
}

namespace scankit {

// A scalar's text; "" where there is none.
std::string yaml_text(const YAML::Node& node);

}  // namespace scankit
