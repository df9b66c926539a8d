// SPDX-License-Identifier: Apache-2.0
#include "builder/key.h"

#include <map>
#include <sstream>

#include "doctor/base/files.h"

namespace scankit {

std::string Key::digest() const {
  std::string all;
  for (const auto& [label, value] : inputs_)
    all +=
        std::to_string(label.size()) + ":" + label + "=" + std::to_string(value.size()) + ":" + value + "\n";
  return sha256_hex(all);
}

std::string Key::text() const {
  std::string all;
  for (const auto& [label, value] : inputs_) all += label + ": " + value + "\n";
  return all;
}

std::vector<std::string> changed_labels(const std::string& before, const std::string& after) {
  const auto split = [](const std::string& text) {
    std::vector<std::pair<std::string, std::string>> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
      const auto colon = line.find(": ");
      if (colon != std::string::npos) lines.emplace_back(line.substr(0, colon), line.substr(colon + 2));
    }
    return lines;
  };
  std::map<std::string, std::string> old;
  for (auto& [label, value] : split(before)) old[label] = value;
  std::vector<std::string> changed;
  for (const auto& [label, value] : split(after)) {
    const auto known = old.find(label);
    if (known == old.end() || known->second != value) changed.push_back(label);
  }
  return changed;
}

}  // namespace scankit
