// SPDX-License-Identifier: Apache-2.0
#include "doctor/knowledge/faults.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "doctor/base/embedded.h"

SCANKIT_EMBEDDED(scankit_knowledge_faults);
SCANKIT_EMBEDDED(scankit_knowledge_log_rules);

namespace scankit::knowledge {
namespace {

// A scalar's text; "" where there is none.
std::string yaml_text(const YAML::Node& node) {
  return node.IsDefined() && node.IsScalar() ? node.as<std::string>() : "";
}

// Empty where the row has no such list.
std::vector<std::string> lines(const YAML::Node& node) {
  std::vector<std::string> out;
  if (!node.IsDefined() || !node.IsSequence()) return out;
  for (const auto& item : node) out.push_back(yaml_text(item));
  return out;
}

std::vector<FaultClass> read_fault_classes() {
  std::vector<FaultClass> classes;
  const YAML::Node root = YAML::Load(SCANKIT_UNPACKED(scankit_knowledge_faults));
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

namespace {

// One word, or a list of them.
std::vector<std::string> words(const YAML::Node& node) {
  std::vector<std::string> out;
  if (!node.IsDefined()) return out;
  if (node.IsScalar()) return {yaml_text(node)};
  for (const auto& item : node) out.push_back(yaml_text(item));
  return out;
}

// Parsed once for both lists.
const YAML::Node& log_rule_table() {
  static const YAML::Node root = YAML::Load(SCANKIT_UNPACKED(scankit_knowledge_log_rules));
  return root;
}

std::vector<LogRule> read_rules() {
  std::vector<LogRule> rules;
  for (const auto& row : log_rule_table()["rules"]) {
    LogRule rule{.id = yaml_text(row["id"]),
                 .cause = yaml_text(row["cause"]),
                 .classify = yaml_text(row["classify"]),
                 .role = yaml_text(row["role"]),
                 .sure = yaml_text(row["sure"]),
                 .pattern = yaml_text(row["pattern"]),
                 .after = yaml_text(row["after"]),
                 .meaning = yaml_text(row["meaning"]),
                 .settles = yaml_text(row["settles"]),
                 .repair = yaml_text(row["repair"]),
                 .alternatives = words(row["alternatives"])};
    // What a row leaves out. A role or a certainty is written only where it differs.
    if (rule.role.empty()) rule.role = "fatal";
    if (rule.sure.empty()) rule.sure = "likely";
    rules.push_back(std::move(rule));
  }
  return rules;
}

std::vector<LogJoin> read_joins() {
  std::vector<LogJoin> joins;
  for (const auto& row : log_rule_table()["joins"])
    joins.push_back({.causes = words(row["cause"]),
                     .clues = words(row["clue"]),
                     .unless = words(row["unless"]),
                     .gives = yaml_text(row["gives"]),
                     .sure = yaml_text(row["sure"]),
                     .meaning = yaml_text(row["meaning"]),
                     .settles = yaml_text(row["settles"])});
  return joins;
}

}  // namespace

const std::vector<LogRule>& log_rules() {
  static const std::vector<LogRule> rules = read_rules();
  return rules;
}

const LogRule* log_rule(std::string_view id) {
  const auto rule = std::ranges::find(log_rules(), id, &LogRule::id);
  return rule == log_rules().end() ? nullptr : &*rule;
}

const std::vector<LogJoin>& log_joins() {
  static const std::vector<LogJoin> joins = read_joins();
  return joins;
}

}  // namespace scankit::knowledge
