// SPDX-License-Identifier: Apache-2.0
#include "doctor/knowledge/faults.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "doctor/knowledge/yaml_text.h"

extern "C" const char scankit_knowledge_faults[], scankit_knowledge_faults_end[];

namespace scankit {
namespace {

// Empty where the row has no such list.
std::vector<std::string> lines(const YAML::Node& node) {
  std::vector<std::string> out;
  if (!node.IsDefined() || !node.IsSequence()) return out;
  for (const auto& item : node) out.push_back(yaml_text(item));
  return out;
}

std::vector<FaultClass> read_fault_classes() {
  std::vector<FaultClass> classes;
  const YAML::Node root = YAML::Load(std::string(scankit_knowledge_faults, scankit_knowledge_faults_end));
  for (const auto& fault : root["faults"]) {
    const YAML::Node proof = fault["proof"];
    classes.push_back({.id = yaml_text(fault["id"]),
                       .title = yaml_text(fault["title"]),
                       .stage = yaml_text(fault["stage"]),
                       .error_lines = lines(fault["error_lines"]),
                       .seen_with = lines(fault["seen_with"]),
                       .root_cause = yaml_text(fault["root_cause"]),
                       .proof_static = lines(proof["static"]),
                       .proof_observed = lines(proof["probe"]),
                       .fix = yaml_text(fault["fix"]),
                       .sources = lines(fault["sources"]),
                       .no_static = yaml_text(proof["no_static"]),
                       .no_observed = yaml_text(proof["no_observed"]),
                       .no_log = yaml_text(proof["no_log"])});
  }
  return classes;
}

}  // namespace

const std::vector<FaultClass>& fault_classes() {
  static const std::vector<FaultClass> classes = read_fault_classes();
  return classes;
}

const FaultClass* fault_class(std::string_view id) {
  const auto found = std::ranges::find(fault_classes(), id, &FaultClass::id);
  return found == fault_classes().end() ? nullptr : &*found;
}

}  // namespace scankit
