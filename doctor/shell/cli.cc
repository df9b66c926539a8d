// SPDX-License-Identifier: Apache-2.0
#include "doctor/shell/cli.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/base/tool_version.h"
#include "doctor/command_line/help.h"
#include "doctor/knowledge/faults.h"
#include "doctor/shell/completion.h"

namespace scankit {
namespace {

// Adds the causes as values of explain's argument. The parser itself accepts any word there, in order to
// suggest the nearest cause.
CommandRow table_with_causes(const CLI::App& app) {
  CommandRow table = command_table(app);
  for (CommandRow& command : table.commands)
    if (command.path == "explain")
      for (OptionRow& positional : command.positionals)
        for (const FaultClass& fault : fault_classes()) positional.choices.push_back(fault.id);
  return table;
}

}  // namespace

void add_shell_commands(CLI::App& app, int& exit_status) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* completion = app.add_subcommand("completion", say("print the completion script for a shell"));
  note(*completion,
       {.examples = {"scankit completion bash", "scankit completion zsh"}, .statuses = {}, .trailing = {}});
  completion->add_option("shell", *shell, say("the shell"))
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  // The table is made when the command runs, so it contains every command, also those added later.
  completion->callback([shell, &app, &exit_status] {
    std::fputs(completion_of(*shell, table_with_causes(app)).value_or("").c_str(), stdout);
    exit_status = kExitClean;
  });
  CLI::App* manual = app.add_subcommand("man", say("print the manual page, for man -l -"));
  note(*manual, {.examples = {"scankit man"}, .statuses = {}, .trailing = {}});
  manual->callback([&app, &exit_status] {
    std::fputs(manual_page(command_table(app), kToolVersion).c_str(), stdout);
    exit_status = kExitClean;
  });
}

}  // namespace scankit
