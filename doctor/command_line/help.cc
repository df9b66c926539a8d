// SPDX-License-Identifier: Apache-2.0
#include "doctor/command_line/help.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>

#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/command_line/help_page.h"
#include "doctor/command_line/usage_problem.h"

namespace scankit {
namespace {

class HelpStyle : public CLI::FormatterBase {
 public:
  // The name that CLI11 gives is that of the innermost command alone, or all, by its version: not used.
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    return help_page(command_table(*app));
  }
  std::map<const CLI::App*, CommandNotes> notes;
};

std::shared_ptr<HelpStyle> style_of(const CLI::App& app) {
  return std::dynamic_pointer_cast<HelpStyle>(app.get_formatter());
}

const CLI::App* command_named(const CLI::App& app, const std::string& name, std::vector<std::string>& known) {
  for (const CLI::App* inner : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (inner->get_group().empty()) continue;  // hidden
    if (inner->get_name() == name) return inner;
    known.push_back(inner->get_name());
  }
  return nullptr;
}

}  // namespace

void set_help_style(CLI::App& app) {
  app.formatter(std::make_shared<HelpStyle>());
  app.option_defaults()->group(say("Options"));
  app.group(say("Commands"));
  app.set_help_flag("-h,--help", say("print help"));
}

void note(CLI::App& command, CommandNotes notes) {
  if (const auto style = style_of(command)) style->notes[&command] = std::move(notes);
}

const CommandNotes* notes_of(const CLI::App& command) {
  const auto style = style_of(command);
  if (!style) return nullptr;
  const auto found = style->notes.find(&command);
  return found == style->notes.end() ? nullptr : &found->second;
}

void begin_group(CLI::App& command, const std::string& heading) { command.option_defaults()->group(heading); }
std::string group_of_input() { return say("Input"); }
std::string group_of_output() { return say("Output"); }

void add_help_command(CLI::App& app, int& exit_status) {
  const auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("help", say("print the help of a command"));
  command->add_option("command", *words,
                      say("the command, such as doctor or env lock [default: all of them]"));
  note(*command, {.examples = {"scankit help", "scankit help doctor", "scankit help env lock"},
                  .statuses = {},
                  .trailing = {}});
  command->callback([words, &app, &exit_status] {
    const CLI::App* named = &app;
    for (const std::string& word : *words) {
      std::vector<std::string> known;
      const CLI::App* inner = command_named(*named, word, known);
      if (inner == nullptr) throw CLI::ValidationError(unexpected_argument(word, known));
      named = inner;
    }
    std::fputs(help_page(command_table(*named)).c_str(), stdout);
    exit_status = kExitClean;
  });
}

std::string help_of_bare_group(const CLI::App& app) {
  const CLI::App* group = &app;
  while (!group->get_subcommands().empty()) group = group->get_subcommands().back();
  const CommandRow table = command_table(*group);
  if (group == &app || table.commands.empty() || !group->remaining(false).empty()) return "";
  return help_page(table);
}

}  // namespace scankit
