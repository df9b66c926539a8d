// SPDX-License-Identifier: Apache-2.0
#include "doctor/shell/command_table.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

namespace scankit {
namespace {

// CLI::IsMember has no other place for its members than the name of the type: "TEXT:{auto,always,never}".
std::vector<std::string> members(const std::string& type) {
  const auto open = type.find('{'), close = type.rfind('}');
  if (open == std::string::npos || close == std::string::npos || close < open) return {};
  return CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

std::string value_of(const CLI::Option& option, const std::vector<std::string>& choices) {
  if (option.get_items_expected_max() == 0) return "";
  const std::string type = option.get_type_name();
  const std::string own = type.substr(0, type.find(":{"));
  if (!choices.empty() && (own == "TEXT" || own.empty() || own.front() == '{'))
    return CLI::detail::join(choices, "|");
  return own;
}

OptionRow row_of(const CLI::Option& option) {
  OptionRow row;
  row.text = option.get_description();
  row.choices = members(option.get_type_name());
  row.value = value_of(option, row.choices);
  row.repeats = option.get_items_expected_max() > 1;
  row.required = option.get_required();
  if (option.get_positional()) row.names = {option.get_name(true)};
  if (!option.nonpositional()) return row;
  row.names.clear();
  for (const std::string& name : option.get_snames()) row.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) row.names.push_back("--" + name);
  return row;
}

CommandRow row_of(const CLI::App& app, const std::string& path) {
  CommandRow row;
  row.path = path;
  row.text = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    (option->nonpositional() ? row.options : row.positionals).push_back(row_of(*option));
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name().empty() || command->get_group().empty()) continue;  // hidden
    row.commands.push_back(
        row_of(*command, path.empty() ? command->get_name() : path + " " + command->get_name()));
  }
  return row;
}

void collect(const CommandRow& row, std::vector<const CommandRow*>& all) {
  all.push_back(&row);
  for (const CommandRow& command : row.commands) collect(command, all);
}

}  // namespace

CommandRow command_table(const CLI::App& app) { return row_of(app, ""); }

std::vector<const CommandRow*> all_commands(const CommandRow& table) {
  std::vector<const CommandRow*> all;
  collect(table, all);
  return all;
}

bool takes_path(const OptionRow& option) {
  constexpr std::string_view kPaths[] = {"FILE", "DIR", "PATH", "SNAPSHOT", "SPEC"};
  return option.choices.empty() && std::ranges::any_of(kPaths, [&](std::string_view word) {
           return option.value.find(word) != std::string::npos;
         });
}

}  // namespace scankit
