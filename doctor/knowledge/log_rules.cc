// SPDX-License-Identifier: Apache-2.0
#include "doctor/knowledge/log_rules.h"

#include <yaml-cpp/yaml.h>

extern "C" const char scankit_knowledge_log_rules[], scankit_knowledge_log_rules_end[];

namespace scankit {
namespace {

std::string text(const YAML::Node& node) {
  return node.IsDefined() && node.IsScalar() ? node.as<std::string>() : "";
}

// One word, or a list of them.
std::vector<std::string> words(const YAML::Node& node) {
  std::vector<std::string> out;
  if (!node.IsDefined()) return out;
  if (node.IsScalar()) return {text(node)};
  for (const auto& item : node) out.push_back(text(item));
  return out;
}

const YAML::Node& table() {
  static const YAML::Node root =
      YAML::Load(std::string(scankit_knowledge_log_rules, scankit_knowledge_log_rules_end));
  return root;
}

std::vector<LogRule> read_rules() {
  std::vector<LogRule> rules;
  for (const auto& row : table()["rules"]) {
    LogRule rule{.id = text(row["id"]),
                 .cause = text(row["cause"]),
                 .classify = text(row["classify"]),
                 .role = text(row["role"]),
                 .sure = text(row["sure"]),
                 .pattern = text(row["pattern"]),
                 .after = text(row["after"]),
                 .meaning = text(row["meaning"]),
                 .settles = text(row["settles"]),
                 .alternatives = words(row["alternatives"])};
    if (rule.role.empty()) rule.role = "fatal";
    if (rule.sure.empty()) rule.sure = "likely";
    rules.push_back(std::move(rule));
  }
  return rules;
}

std::vector<LogJoin> read_joins() {
  std::vector<LogJoin> joins;
  for (const auto& row : table()["joins"])
    joins.push_back({.causes = words(row["cause"]),
                     .clues = words(row["clue"]),
                     .unless = words(row["unless"]),
                     .gives = text(row["gives"]),
                     .sure = text(row["sure"]),
                     .meaning = text(row["meaning"]),
                     .settles = text(row["settles"])});
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
