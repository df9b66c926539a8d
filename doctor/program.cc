// SPDX-License-Identifier: Apache-2.0
#include "doctor/program.h"

#include <CLI/CLI.hpp>

#include "builder/cli/commands.h"
#include "ci/fleet/commands.h"
#include "ci/gate/gate.h"
#include "doctor/base/say.h"
#include "doctor/base/tool_version.h"
#include "doctor/cli/commands.h"
#include "doctor/cli/run.h"
#include "doctor/command_line/command_line.h"
#include "doctor/shell/shell.h"
#include "envspec/cli/cli.h"
#include "envspec/spec/derive.h"
#include "validate/cli.h"

namespace scankit {

// The order of the add_... calls is the order of the commands in the help.
void add_all_commands(CLI::App& app, int& exit_status, std::vector<std::string>& words) {
  set_help_style(app);
  // Only for the help and to make the parser accept it. main() takes the value out of the command line
  // before the first text is printed, wherever the option is (doctor/text/catalogue.h).
  app.add_option_function<std::string>(
         "--lang", [](const std::string&) {},
         say("output language: en, an installed translation, or a .mo file [default: LANGUAGE, LC_ALL, "
             "LC_MESSAGES, LANG]"))
      ->type_name("LANGUAGE");
  app.set_version_flag("-V,--version", std::string("scankit ") + kToolVersion, say("print the version"));
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

}  // namespace scankit
