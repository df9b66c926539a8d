// SPDX-License-Identifier: Apache-2.0
#include "doctor/program.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>

#include "builder/cli/commands.h"
#include "ci/fleet/commands.h"
#include "ci/gate/gate.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/base/tool_version.h"
#include "doctor/cli/commands.h"
#include "doctor/cli/run.h"
#include "doctor/command_line/command_line.h"
#include "doctor/report/progress.h"
#include "doctor/report/words.h"
#include "doctor/shell/shell.h"
#include "doctor/text/catalogue.h"
#include "envspec/cli/cli.h"
#include "envspec/spec/derive.h"
#include "validate/cli.h"

namespace scankit {
namespace {

// What scankit prints without a command: the four commands that most users need.
std::string welcome() {
  return say(
      "scankit keeps compiled PyTorch CUDA extensions working.\n\n  scankit run -- CMD   "
      "run a command, and explain its failure\n  scankit doctor       find out why an "
      "import fails (in the current Python, or --python P)\n  scankit fix          build and install a "
      "module that works, or change nothing\n  scankit validate     prove that the results of the installed "
      "module are correct\n\nscankit help lists all commands.\n");
}

std::optional<std::string> variable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// Turns an output that was lost into kExitInternal: a full disk, or a standard output that was closed. No
// command checks that itself. The C library does not remember why an earlier write failed, so one more
// byte is written, to an output that is incomplete anyway, to get errno.
int status_with_output(int status) {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good()) return status;
  const bool failed_again = ::write(STDOUT_FILENO, "\n", 1) < 0;
  cli::report_error({Errc::Io,
                     failed_again ? message("cannot write to standard output: {}", std::strerror(errno))
                                  : message("cannot write to standard output"),
                     ""});
  return kExitInternal;
}

}  // namespace

// The order of the add_... calls is the order of the commands in the help.
void add_all_commands(CLI::App& app, int& exit_status, std::vector<std::string>& words) {
  set_help_style(app);
  // Only for the help and to make the parser accept it. run_scankit() takes the value out of the command line
  // before the first text is printed, wherever the option is (doctor/text/catalogue.h).
  app.add_option_function<std::string>(
         "--lang", [](const std::string&) {},
         say("output language: en, an installed translation, or a .mo file [default: LANGUAGE, LC_ALL, "
             "LC_MESSAGES, LANG]"))
      ->type_name("LANGUAGE");
  const auto as_json = std::make_shared<bool>(false);
  app.add_flag("--json", *as_json,
               say("with --version: also print commit, compiler, libraries and the date of the symbol index, "
                   "as JSON"));
  app.set_version_flag(
      "-V,--version",
      [as_json] {
        if (!*as_json) return std::string("scankit ") + kToolVersion;
        std::string document = version_json();
        document.pop_back();  // CLI11 adds a newline
        return document;
      },
      say("print the version"));
  app.get_option("--json")->needs(app.get_option("--version"));
  app.require_subcommand(0, 1);
  note(app, {.examples = {"scankit run -- python train.py", "scankit doctor",
                          "scankit doctor --log build.log", "scankit fix", "scankit validate"},
             .statuses = {},
             .trailing = {}});
  cli::add_run_command(app, exit_status, words);
  cli::add_doctor_commands(app, exit_status);
  cli::add_builder_commands(app, exit_status, envspec::machine_of_spec);
  envspec::add_env_commands(app, exit_status);
  validate::add_validate_commands(app, exit_status);
  gate::add_ci_commands(app, exit_status);
  fleet::add_fleet_commands(app, exit_status, words);
  shell::add_shell_commands(app, exit_status);
  add_help_command(app, exit_status);
}

int run_scankit(int argc, char** argv) {
  // The order matters: the language is taken out of the words first, because even the help texts that
  // CLI11 is given below are translated when the options are added.
  std::vector<std::string> words(argv + 1, argv + argc);
  if (argc > 0) report::set_scankit_program(argv[0]);
  const std::string wish = take_language_option(words);
  const auto language = choose_language(wish, variable);
  if (!language) {
    cli::report_error(language.error());
    return kExitUsage;
  }
  if (const std::string locale = locale_in_the_way(wish, variable); !locale.empty())
    std::fprintf(
        stderr, "scankit: %s\n",
        say("--lang {}: the locale {} is not UTF-8, so the output is English", wish, locale).c_str());
  const Speaking speaking(language->get());
  report::set_progress_language(language->get());
  CLI::App app{say("environment doctor and reproducible build toolkit for compiled PyTorch CUDA extensions"),
               "scankit"};
  int exit_status = kExitClean;
  add_all_commands(app, exit_status, words);
  try {
    std::ranges::reverse(words);  // CLI11 takes a vector from its end
    app.parse(std::move(words));
  } catch (const CLI::Success& asked) {  // --help, --version
    return status_with_output(app.exit(asked));
  } catch (const CLI::ParseError& problem) {
    // As with uv, "scankit env" alone lists its commands, and is a usage error all the same.
    if (const std::string help = help_of_bare_group(app); !help.empty())
      std::fputs(help.c_str(), stdout);
    else
      std::fprintf(stderr, "scankit: %s\n", usage_problem(app, problem).c_str());
    return kExitUsage;
  }
  if (app.get_subcommands().empty()) std::fputs(welcome().c_str(), stdout);
  return status_with_output(exit_status);
}

}  // namespace scankit
