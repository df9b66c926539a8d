// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/cli/run.h"
#include "doctor/command_line/help.h"
#include "doctor/model/redact.h"

namespace scankit {
namespace {

// CLI11 must not see the user's command: its options are not ours.
std::vector<std::string> take_command(std::vector<std::string>& words) {
  const auto dashes = std::ranges::find(words, "--");
  if (words.empty() || words.front() != "run" || dashes == words.end()) return {};
  std::vector<std::string> command(dashes + 1, words.end());
  words.erase(dashes, words.end());
  return command;
}

void add_run_outputs(CLI::App& command, RunOptions& options) {
  command.add_option("--json", options.json, say("also write the diagnosis as JSON to FILE"))
      ->type_name("FILE");
  command
      .add_option("--report", options.show.reports,
                  say("also write the diagnosis to FILE; repeat for several; formats: {}",
                      format_names(report_formats())))
      ->type_name("FORMAT=FILE")
      ->check(
          CLI::Validator([](const std::string& wish) { return report_problem(wish, report_formats()); }, ""));
  command
      .add_option("--log", options.log, say("also write the kept output of a command that failed to FILE"))
      ->type_name("FILE");
  command.add_flag("--redact", options.redact, redact_help());
  add_look_options(command, options.show);
}

// --json and --log take a file; `-` is the screen, which belongs to the command.
void check_run_files(const RunOptions& options) {
  std::vector<std::string> wishes = options.show.reports;
  if (!options.json.empty()) wishes.push_back("json=" + options.json);
  if (!options.log.empty()) wishes.push_back("log=" + options.log);
  for (const std::string& wish : wishes)
    if (parse_report(wish).path == "-")
      throw CLI::ValidationError(
          say("standard output belongs to the command: write to a file instead of - ({})", wish));
  if (const std::string clash = report_clash(wishes, false); !clash.empty())
    throw CLI::ValidationError(clash);
}

}  // namespace

void add_run_command(CLI::App& app, int& exit_status, std::vector<std::string>& words) {
  const auto options = std::make_shared<RunOptions>();
  options->command = take_command(words);
  CLI::App* command = app.add_subcommand("run", say("run a command as it is, and explain its failure"));
  note(*command,
       {.examples = {"scankit run -- python train.py", "scankit run -- torchrun --nproc-per-node 8 train.py",
                     "scankit run --json failure.json -- pip install mamba-ssm"},
        .statuses = {{kExitUsage, say("usage error, and the command was not started")},
                     {126, say("the command cannot be executed")},
                     {127, say("the command was not found; otherwise the status is the command's")}},
        .trailing = "-- <COMMAND>..."});
  begin_group(*command, group_of_input());
  command
      ->add_option("--python", options->python, say("the Python to diagnose [default: the one that failed]"))
      ->type_name("PATH");
  command->add_flag_callback(
      "--no-import", [options] { options->imports = ImportPolicy::Never; },
      say("diagnose from files only, import nothing again"));
  begin_group(*command, group_of_output());
  add_run_outputs(*command, *options);
  // Words that are no options: most likely the command, without "--".
  const auto stray = std::make_shared<std::vector<std::string>>();
  command->add_option("words", *stray)->group("");
  command->callback([options, stray, &exit_status] {
    if (!stray->empty())
      throw CLI::ValidationError(say("write -- before the command: scankit run -- {}", shell_line(*stray)));
    if (options->command.empty())
      throw CLI::ValidationError(say("the command is missing: scankit run -- python train.py"));
    check_run_files(*options);
    exit_status = run_run(*options);
  });
}

}  // namespace scankit
