// SPDX-License-Identifier: Apache-2.0
#include "doctor/knowledge/faults.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>

extern "C" const char scankit_knowledge_faults[], scankit_knowledge_faults_end[];

namespace scankit {
namespace {

std::string text(const YAML::Node& node) {
  return node.IsDefined() && node.IsScalar() ? node.as<std::string>() : "";
}

std::vector<std::string> lines(const YAML::Node& node) {
  std::vector<std::string> out;
  if (!node.IsDefined() || !node.IsSequence()) return out;
  for (const auto& item : node) out.push_back(text(item));
  return out;
}

std::vector<FaultClass> read_table() {
  std::vector<FaultClass> classes;
  const YAML::Node root = YAML::Load(std::string(scankit_knowledge_faults, scankit_knowledge_faults_end));
  for (const auto& fault : root["faults"]) {
    const YAML::Node proof = fault["proof"];
    classes.push_back({.id = text(fault["id"]),
                       .title = text(fault["title"]),
                       .stage = text(fault["stage"]),
                       .error_lines = lines(fault["error_lines"]),
                       .seen_with = lines(fault["seen_with"]),
                       .root_cause = text(fault["root_cause"]),
                       .proof_static = lines(proof["static"]),
                       .proof_observed = lines(proof["probe"]),
                       .fix = text(fault["fix"]),
                       .sources = lines(fault["sources"]),
                       .no_static = text(proof["no_static"]),
                       .no_observed = text(proof["no_observed"]),
                       .no_log = text(proof["no_log"])});
  }
  return classes;
}

}  // namespace

const std::vector<FaultClass>& fault_classes() {
  static const std::vector<FaultClass> classes = read_table();
  return classes;
}

const FaultClass* fault_class(std::string_view id) {
  const auto found = std::ranges::find(fault_classes(), id, &FaultClass::id);
  return found == fault_classes().end() ? nullptr : &*found;
}

}  // namespace scankit
