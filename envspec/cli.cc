// SPDX-License-Identifier: Apache-2.0
#include "envspec/cli.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "envspec/commands.h"
#include "envspec/lock_commands.h"

namespace scankit {
namespace {

// As `doctor` and `snapshot` have it.
void add_redact(CLI::App& command, bool& redact) {
  command.add_flag(
      "--redact", redact,
      say("Without user names, home folders, host names, tokens and GPU serials, in every report"));
}

void add_cache(CLI::App& command, std::string& folder) {
  command
      .add_option("--cache-dir", folder,
                  say("where hashes of unchanged files are kept (default: $XDG_CACHE_HOME/scankit)"))
      ->type_name("DIR");
}

void add_init(CLI::App& env, int& exit_status) {
  const auto options = std::make_shared<EnvInitOptions>();
  CLI::App* command =
      env.add_subcommand("init", say("Write scankit.yaml: what this environment is, to be kept"));
  add_subject_options(*command, options->subject);
  command
      ->add_option("--out", options->out, say("File to write (default: scankit.yaml; - for standard output)"))
      ->type_name("FILE");
  command->add_flag("--force", options->force, say("Write over a file that is there"));
  command->callback([options, &exit_status] { exit_status = run_env_init(*options); });
}

void add_check(CLI::App& env, int& exit_status) {
  const auto options = std::make_shared<EnvCheckOptions>();
  CLI::App* command =
      env.add_subcommand("check", say("Say where an environment differs from its spec and its lock"));
  add_subject_options(*command, options->subject);
  command->add_option("--spec", options->spec, say("The spec (default: scankit.yaml of this folder)"))
      ->type_name("FILE");
  command
      ->add_option("--lock", options->lock,
                   say("The lock (default: scankit.lock of this folder, where it is there)"))
      ->type_name("FILE");
  add_cache(*command, options->cache_dir);
  add_redact(*command, options->redact);
  add_show_options(*command, options->show, kExitDrift);
  command->callback([options, &exit_status] {
    check_show_options(options->show);
    exit_status = run_env_check(*options);
  });
}

void add_diff(CLI::App& env, int& exit_status) {
  const auto options = std::make_shared<EnvDiffOptions>();
  CLI::App* command = env.add_subcommand(
      "diff",
      say("Compare any two of a spec, a lock, a snapshot and an environment (its Python or its folder)"));
  command->add_option("a", options->left, say("The one"))->required()->type_name("A");
  command->add_option("b", options->right, say("The other"))->required()->type_name("B");
  command->add_flag("--json", options->json, say("The answer as JSON on standard output"));
  add_cache(*command, options->cache_dir);
  add_redact(*command, options->redact);
  command->callback([options, &exit_status] { exit_status = run_env_diff(*options); });
}

void add_schema(CLI::App& env, int& exit_status) {
  CLI::App* command = env.add_subcommand("schema", say("Print the JSON Schema of scankit.yaml, for editors"));
  command->callback([&exit_status] { exit_status = run_env_schema(); });
}

}  // namespace

void add_subject_options(CLI::App& command, SubjectOptions& options) {
  auto* python =
      command.add_option("--python", options.python,
                         say("The Python to look at (default: $VIRTUAL_ENV, ./.venv, $CONDA_PREFIX, PATH)"));
  python->type_name("P");
  auto* root = command.add_option(
      "--root", options.root, say("Look at an unpacked root file system; --python is then a path inside it"));
  root->type_name("DIR");
  command.add_option("--from", options.from, say("Look at a stored snapshot (- for standard input)"))
      ->type_name("SNAPSHOT")
      ->excludes(python)
      ->excludes(root);
}

void add_env_commands(CLI::App& app, int& exit_status) {
  CLI::App* env = app.add_subcommand("env", say("Pin an environment, and say where it differs later"));
  env->require_subcommand(1);
  add_init(*env, exit_status);
  add_check(*env, exit_status);
  add_diff(*env, exit_status);
  add_lock_commands(*env, exit_status);
  add_schema(*env, exit_status);
}

}  // namespace scankit
