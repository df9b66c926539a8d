// SPDX-License-Identifier: Apache-2.0
#include "ci/gate/cli.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "ci/gate/gate.h"
#include "ci/gate/init.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/cli/cli.h"

namespace scankit {
namespace {

void add_run(CLI::App& ci, int& exit_status) {
  const auto options = std::make_shared<GateOptions>();
  CLI::App* command = ci.add_subcommand(
      "run", say("Run doctor, env check and validate under one policy: one answer, one status"));
  command
      ->add_option(
          "--policy", options->policy,
          say("The policy (default: scankit-ci.yaml of this folder; without one, every error fails)"))
      ->type_name("FILE");
  command
      ->add_option("--python", options->python,
                   say("The Python to look at (default: $VIRTUAL_ENV, ./.venv, $CONDA_PREFIX, PATH)"))
      ->type_name("P");
  auto* out = command->add_option("--out", options->out, say("Folder that keeps the answer of each step"));
  out->type_name("DIR");
  command
      ->add_flag("--resume", options->resume,
                 say("Skip the steps whose answer is in --out, of the same policy, scankit and environment"))
      ->needs(out);
  add_budget_option(*command, options->budget);
  auto* never = command->add_flag("--no-import", options->no_import,
                                  say("Read files only, run nothing; validate is left out"));
  command->add_flag("--import", options->import_foreign, say("Import even as root on files of another user"))
      ->excludes(never);
  add_show_options(*command, options->show, kExitClean);
  command->callback([options, &exit_status] {
    check_show_options(options->show);
    exit_status = run_gate(*options);
  });
}

void add_init(CLI::App& ci, int& exit_status) {
  const auto options = std::make_shared<CiInitOptions>();
  CLI::App* command =
      ci.add_subcommand("init", say("Write what a CI server, a scheduler or a monitor needs to run scankit"));
  std::string kinds;
  for (const std::string_view kind : template_kinds())
    kinds += (kinds.empty() ? "" : ", ") + std::string(kind);
  command->add_option("kind", options->kind, kinds)
      ->required()
      ->type_name("KIND")
      ->check(CLI::IsMember(std::vector<std::string>(template_kinds().begin(), template_kinds().end())));
  command->add_option("--out", options->out, say("Folder to write into (default: this one)"))
      ->type_name("DIR");
  command->add_flag("--force", options->force, say("Write over files that are there"));
  command->callback([options, &exit_status] { exit_status = run_ci_init(*options); });
}

void add_schema(CLI::App& ci, int& exit_status) {
  CLI::App* command =
      ci.add_subcommand("schema", say("Print the JSON Schema of scankit-ci.yaml, for editors"));
  command->callback([&exit_status] { exit_status = run_policy_schema(); });
}

}  // namespace

void add_ci_commands(CLI::App& app, int& exit_status) {
  CLI::App* ci = app.add_subcommand("ci", say("Gate an environment in CI, on a node or in a cluster"));
  ci->require_subcommand(1);
  add_run(*ci, exit_status);
  add_init(*ci, exit_status);
  add_schema(*ci, exit_status);
}

}  // namespace scankit
