// SPDX-License-Identifier: Apache-2.0
#include "doctor/knowledge/log_rules.h"

#include <yaml-cpp/yaml.h>

#include "doctor/knowledge/yaml_text.h"

extern "C" const char scankit_knowledge_log_rules[], scankit_knowledge_log_rules_end[];

namespace scankit {
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
  static const YAML::Node root =
      YAML::Load(std::string(scankit_knowledge_log_rules, scankit_knowledge_log_rules_end));
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

const std::vector<LogJoin>& log_joins() {
  static const std::vector<LogJoin> joins = read_joins();
  return joins;
}

}  // namespace scankit
