// SPDX-License-Identifier: Apache-2.0
#include "builder/compile/key.h"

#include <algorithm>
#include <sstream>

#include "doctor/base/files.h"

namespace scankit {
namespace {

const std::string* value_of(const Inputs& inputs, const std::string& label) {
  const auto at =
      std::find_if(inputs.begin(), inputs.end(), [&](const auto& input) { return input.first == label; });
  return at == inputs.end() ? nullptr : &at->second;
}

}  // namespace

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

Inputs parse_inputs(const std::string& text) {
  Inputs inputs;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    const auto colon = line.find(": ");
    if (colon != std::string::npos) inputs.emplace_back(line.substr(0, colon), line.substr(colon + 2));
  }
  return inputs;
}

std::vector<InputChange> changed_inputs(const Inputs& before, const Inputs& after) {
  std::vector<InputChange> changes;
  for (const auto& [label, value] : after) {
    const std::string* old = value_of(before, label);
    if (old == nullptr) changes.push_back({label, "", value, true, false});
    if (old != nullptr && *old != value) changes.push_back({label, *old, value, false, false});
  }
  for (const auto& [label, value] : before)
    if (value_of(after, label) == nullptr) changes.push_back({label, value, "", false, true});
  return changes;
}

}  // namespace scankit
