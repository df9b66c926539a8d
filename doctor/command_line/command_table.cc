// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "doctor/command_line/command_line.h"

namespace scankit {
namespace {

// The values that CLI::IsMember accepts. CLI11 keeps them only in the name of the
// type: "TEXT:{auto,always,never}".
std::vector<std::string> members(const std::string& type) {
  const auto open = type.find('{'), close = type.rfind('}');
  if (open == std::string::npos || close == std::string::npos || close < open) return {};
  return CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

// What the help shows for the value: the choices where the type has no name of its own, else that name. A
// colon separates it from the names of the validators: "SECONDS:FLOAT in [0.1 - 86400]". "" for a flag.
std::string value_name(const CLI::Option& option, const std::vector<std::string>& choices) {
  if (option.get_items_expected_max() == 0) return "";
  const std::string type = option.get_type_name();
  const std::string own = type.substr(0, type.find(':'));
  if (!choices.empty() && (own == "TEXT" || own.empty() || own.front() == '{'))
    return CLI::detail::join(choices, "|");
  return own;
}

// The names in the order in which the options were added. CLI11 keeps these as sets of pointers, whose
// order changes from run to run.
std::vector<std::string> names_in_order(const CLI::App& app, const std::set<CLI::Option*>& some) {
  std::vector<std::string> names;
  for (CLI::Option* option : const_cast<CLI::App&>(app).get_options())
    if (some.contains(option)) names.push_back(option->get_name());
  return names;
}

// An option with long or short names is listed under these, even if it may be given as a
// positional as well.
OptionRow row_of(const CLI::App& app, const CLI::Option& option) {
  OptionRow row;
  row.text = option.get_description();
  row.group = option.get_group();
  row.fallback = option.get_default_str();
  row.choices = members(option.get_type_name());
  row.value = value_name(option, row.choices);
  row.repeats = option.get_items_expected_max() > 1;
  row.required = option.get_required();
  row.value_optional = option.get_items_expected_min() == 0 && !row.value.empty();
  row.excludes = names_in_order(app, option.get_excludes());
  row.needs = names_in_order(app, option.get_needs());
  if (option.get_positional()) row.names = {option.get_name(true)};
  if (!option.nonpositional()) return row;
  row.names.clear();
  for (const std::string& name : option.get_snames()) row.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) row.names.push_back("--" + name);
  return row;
}

// `path` is that of the command itself: "ci run". Recursive; options, positionals and commands without a
// group are hidden, which is CLI11's convention.
CommandRow row_of(const CLI::App& app, const std::string& path) {
  CommandRow row;
  row.path = path;
  row.text = app.get_description();
  if (const CommandNotes* notes = notes_of(app)) {
    row.examples = notes->examples;
    row.statuses = notes->statuses;
    row.trailing = notes->trailing;
  }
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    (option->nonpositional() ? row.options : row.positionals).push_back(row_of(app, *option));
  }
  // The filter that accepts everything returns the commands in the order in which they were added;
  // without a filter CLI11 returns only those that the last parse has used.
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name().empty() || command->get_group().empty()) continue;  // hidden
    row.commands.push_back(
        row_of(*command, path.empty() ? command->get_name() : path + " " + command->get_name()));
  }
  return row;
}

std::string path_of(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  if (parent == nullptr) return "";
  const std::string before = path_of(*parent);
  return before.empty() ? app.get_name() : before + " " + app.get_name();
}

void collect(const CommandRow& row, std::vector<const CommandRow*>& all) {
  all.push_back(&row);
  for (const CommandRow& command : row.commands) collect(command, all);
}

}  // namespace

CommandRow command_table(const CLI::App& app) { return row_of(app, path_of(app)); }

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

std::string value_shown(const OptionRow& option) {
  if (option.value.empty()) return "";
  const std::string shown = "<" + option.value + ">";
  return option.value_optional ? "[" + shown + "]" : shown;
}

}  // namespace scankit
