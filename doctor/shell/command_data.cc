// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "doctor/command_line/command_line.h"
#include "doctor/model/json.h"
#include "doctor/shell/shell.h"

namespace scankit::shell {
namespace {
using Json = nlohmann::ordered_json;

// An option, or a positional. The value is as the help shows it: "<FILE>", "[<OTHER>]".
Json option_data(const OptionRow& option) {
  return {{"names", option.names},
          {"text", option.text},
          {"group", option.group},
          {"value", value_shown(option)},
          {"choices", option.choices},
          {"default", option.fallback.empty() ? Json(nullptr) : Json(option.fallback)},
          {"repeats", option.repeats},
          {"required", option.required},
          {"excludes", option.excludes},
          {"needs", option.needs}};
}

Json all_options(const std::vector<OptionRow>& options) {
  Json data = Json::array();
  for (const OptionRow& option : options) data.push_back(option_data(option));
  return data;
}

Json all_statuses(const std::vector<std::pair<int, std::string>>& statuses) {
  Json data = Json::array();
  for (const auto& [status, text] : statuses) data.push_back({{"status", status}, {"text", text}});
  return data;
}

Json command_data(const CommandRow& command) {
  Json inner = Json::array();
  for (const CommandRow& row : command.commands) inner.push_back(row.path);
  return {{"path", command.path},
          {"text", command.text},
          {"usage", usage_of(command)},
          {"commands", std::move(inner)},
          {"arguments", all_options(command.positionals)},
          {"options", all_options(command.options)},
          {"combinations", combinations(command)},
          {"examples", command.examples},
          {"exit_statuses", all_statuses(command.statuses)}};
}

}  // namespace

std::string commands_json(const CommandRow& table, std::string_view version) {
  Json commands = Json::array();
  for (const CommandRow* command : all_commands(table)) commands.push_back(command_data(*command));
  const Json data{{"$schema", "urn:scankit:commands:1"},
                  {"tool_version", version},
                  {"exit_statuses", all_statuses(exit_statuses())},
                  {"commands", std::move(commands)}};
  return json_document(data);
}

}  // namespace scankit::shell
