// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "ci/gate/gate.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/cli/commands.h"
#include "doctor/command_line/command_line.h"

// The command line of `scankit ci`. The options of a subcommand are shared with its callback, since CLI11
// fills them after the function that declares them has returned.
namespace scankit::gate {
namespace {

void add_run(CLI::App& ci, int& exit_status) {
  const auto options = std::make_shared<GateOptions>();
  CLI::App* command = ci.add_subcommand(
      "run", say("run doctor, env check and validate under one policy: one answer, one exit status"));
  note(*command,
       {.examples = {"scankit ci run", "scankit ci run --policy scankit-ci.yaml --report sarif=scankit.sarif",
                     "scankit ci run --out answers --resume --budget 5m"},
        .statuses = {{kExitClean, say("passed")},
                     {kExitFindings, say("something is broken")},
                     {kExitUsage, say("usage error")},
                     {kExitInconclusive, say("inconclusive")},
                     {kExitValidationFailed, say("wrong results")},
                     {kExitDrift, say("drift")}},
        .trailing = {}});
  begin_group(*command, group_of_input());
  command
      ->add_option("--policy", options->policy,
                   say("the policy; without one, every error fails [default: scankit-ci.yaml, if it exists]"))
      ->type_name("FILE");
  command
      ->add_option("--python", options->python,
                   say("the Python to look at [default: $VIRTUAL_ENV, ./.venv, $CONDA_PREFIX, PATH]"))
      ->type_name("PATH");
  // With --out the answers stay, and --resume can use them again.
  auto* out = command->add_option("--out", options->out, say("directory that keeps the answer of each step"));
  out->type_name("DIR");
  command
      ->add_flag("--resume", options->resume,
                 say("skip the steps that --out already has for this policy, scankit and environment"))
      ->needs(out);
  command
      ->add_option("--require", options->required,
                   say("modules or packages that must be installed; fail if one is missing"))
      ->type_name("NAMES")
      ->delimiter(',');
  command->add_flag("--allow-empty", options->allow_empty,
                    say("exit with 0 if there is nothing to check [default: exit with 4]"));
  cli::add_budget_option(*command, options->budget);
  auto* never = command->add_flag("--no-import", options->no_import,
                                  say("read files only, run nothing; validate is skipped"));
  command
      ->add_flag("--import", options->import_foreign,
                 say("import as root even files that belong to another "
                     "user"))
      ->excludes(never);
  begin_group(*command, group_of_output());
  cli::add_show_options(*command, options->show, kExitClean);
  command->callback([options, &exit_status] {
    cli::check_show_options(options->show);
    exit_status = run_gate(*options);
  });
}

void add_init(CLI::App& ci, int& exit_status) {
  const auto options = std::make_shared<CiInitOptions>();
  CLI::App* command =
      ci.add_subcommand("init", say("write the configuration with which a CI server, a scheduler or a "
                                    "monitor runs scankit"));
  note(*command,
       {.examples = {"scankit ci init github", "scankit ci init slurm-healthcheck --out /etc/slurm"},
        .statuses = {},
        .trailing = {}});
  command->add_option("kind", options->kind, say("kind of file to write"))
      ->required()
      ->type_name("KIND")
      ->check(CLI::IsMember(std::vector<std::string>(template_kinds().begin(), template_kinds().end())));
  command->add_option("--out", options->out, say("directory to write into [default: .]"))->type_name("DIR");
  command->add_flag("--force", options->force, say("overwrite existing files"));
  auto* scankit = command->add_option(
      "--scankit", options->scankit,
      say("for github, gitlab and jenkins: path in the repository, or URL, of the scankit to run [default: "
          ".scankit/scankit]"));
  scankit->type_name("PATH|URL");
  command->add_option("--sha256", options->sha256, say("SHA-256 of --scankit; required for a URL"))
      ->type_name("HASH")
      ->needs(scankit);
  command->callback([options, &exit_status] { exit_status = run_ci_init(*options); });
}

void add_schema(CLI::App& ci, int& exit_status) {
  CLI::App* command =
      ci.add_subcommand("schema", say("print the JSON Schema of scankit-ci.yaml, for editors"));
  note(*command, {.examples = {"scankit ci schema", "scankit ci schema > scankit-ci.schema.json"},
                  .statuses = {},
                  .trailing = {}});
  command->callback([&exit_status] { exit_status = run_policy_schema(); });
}

}  // namespace

void add_ci_commands(CLI::App& app, int& exit_status) {
  CLI::App* ci = app.add_subcommand("ci", say("gate an environment in CI, on a node or in a cluster"));
  ci->require_subcommand(1);
  add_run(*ci, exit_status);
  add_init(*ci, exit_status);
  add_schema(*ci, exit_status);
}

}  // namespace scankit::gate
