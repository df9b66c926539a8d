// SPDX-License-Identifier: Apache-2.0
#include "envspec/cli/cli.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/command_line/command_line.h"
#include "doctor/model/redact.h"
#include "envspec/cli/commands.h"

// The command line of `scankit env`. Each function declares one subcommand; its callback passes the parsed
// options to the run_ function of commands.h. The options are shared with the callback because CLI11
// writes into them when it parses, long after the function has returned.
namespace scankit::envspec {
namespace {

void add_lock(CLI::App& env, int& exit_status) {
  const auto options = std::make_shared<EnvLockOptions>();
  CLI::App* command = env.add_subcommand(
      "lock",
      say("write scankit.lock: exact versions, and the hash of every compiled file and of every wheel"));
  note(*command, {.examples = {"scankit env lock", "scankit env lock --offline --out envs/train.lock"},
                  .statuses = {},
                  .trailing = {}});
  command
      ->add_option("--python", options->subject.python,
                   say("the Python of the environment [default: $VIRTUAL_ENV, ./.venv, $CONDA_PREFIX, PATH]"))
      ->type_name("PATH");
  command
      ->add_option("--root", options->subject.root,
                   say("look at an unpacked root file system; --python is a path inside it"))
      ->type_name("DIR");
  command->add_option("--spec", options->spec, say("the spec [default: scankit.yaml, if it exists]"))
      ->type_name("FILE");
  command
      ->add_option("--out", options->out, say("file to write, - for standard output [default: scankit.lock]"))
      ->type_name("FILE");
  command->add_flag("--offline", options->offline,
                    say("do not query an index; hashes of wheels come from the old lock only"));
  // One day, so that the deadline fits every clock.
  constexpr unsigned kLongest = 86400;
  command->add_option("--timeout", options->node_deadline, say("time limit of the index [default: 120]"))
      ->type_name("SECONDS")
      ->check(CLI::Range(1u, kLongest));
  command
      ->add_option("--cache-dir", options->cache_dir,
                   say("directory for the hashes of unchanged files [default: $XDG_CACHE_HOME/scankit]"))
      ->type_name("DIR");
  command->callback([options, &exit_status] { exit_status = run_env_lock(*options); });
}

void add_export(CLI::App& env, int& exit_status) {
  const auto options = std::make_shared<EnvExportOptions>();
  CLI::App* command = env.add_subcommand("export", say("write the lock in a format that other tools read"));
  note(*command, {.examples = {"scankit env export requirements --out requirements.txt",
                               "scankit env export dockerfile --out docker/Dockerfile",
                               "scankit env export devcontainer --out .devcontainer/devcontainer.json"},
                  .statuses = {},
                  .trailing = {}});
  command->add_option("format", options->format, say("format to write"))
      ->required()
      ->check(CLI::IsMember(
          {"requirements", "pylock", "conda", "pixi", "dockerfile", "apptainer", "devcontainer"}));
  command->add_option("--lock", options->lock, say("the lock [default: scankit.lock]"))->type_name("FILE");
  command
      ->add_option(
          "--out", options->out,
          say("file to write; the files that it refers to are put next to it [default: standard output]"))
      ->type_name("FILE");
  command
      ->add_option("--python", options->subject.python,
                   say("environment with locally built modules, which are packed as wheels"))
      ->type_name("PATH");
  command->add_flag("--partial", options->partial,
                    say("comment out packages that cannot be installed again"));
  command->callback([options, &exit_status] { exit_status = run_env_export(*options); });
}

void add_fetch(CLI::App& env, int& exit_status) {
  const auto options = std::make_shared<EnvFetchOptions>();
  CLI::App* command = env.add_subcommand(
      "fetch",
      say("download the wheels of the lock, and conda's packages, into a directory and check their hashes"));
  note(
      *command,
      {.examples = {"scankit env fetch", "scankit env fetch --out wheels/"}, .statuses = {}, .trailing = {}});
  command->add_option("--lock", options->lock, say("the lock [default: scankit.lock]"))->type_name("FILE");
  command->add_option("--out", options->out, say("directory to write [default: scankit-wheels]"))
      ->type_name("DIR");
  command->callback([options, &exit_status] { exit_status = run_env_fetch(*options); });
}

}  // namespace

void add_lock_commands(CLI::App& env, int& exit_status) {
  add_lock(env, exit_status);
  add_export(env, exit_status);
  add_fetch(env, exit_status);
}

namespace {

// As `doctor` and `snapshot` have it.
void add_redact(CLI::App& command, bool& redact) { command.add_flag("--redact", redact, redact_help()); }

void add_cache(CLI::App& command, std::string& folder) {
  command
      .add_option("--cache-dir", folder,
                  say("directory for the hashes of unchanged files [default: $XDG_CACHE_HOME/scankit]"))
      ->type_name("DIR");
}

void add_init(CLI::App& env, int& exit_status) {
  const auto options = std::make_shared<EnvInitOptions>();
  CLI::App* command =
      env.add_subcommand("init", say("write scankit.yaml, the specification of this environment"));
  note(*command,
       {.examples = {"scankit env init", "scankit env init --python .venv/bin/python --out envs/train.yaml"},
        .statuses = {},
        .trailing = {}});
  add_subject_options(*command, options->subject);
  command
      ->add_option("--out", options->out, say("file to write, - for standard output [default: scankit.yaml]"))
      ->type_name("FILE");
  command->add_flag("--force", options->force, say("overwrite an existing file"));
  command->callback([options, &exit_status] { exit_status = run_env_init(*options); });
}

void add_check(CLI::App& env, int& exit_status) {
  const auto options = std::make_shared<EnvCheckOptions>();
  CLI::App* command =
      env.add_subcommand("check", say("report how an environment differs from its spec and its lock"));
  note(*command,
       {.examples = {"scankit env check", "scankit env check --spec envs/train.yaml --json",
                     "scankit env check --record .venv --lock scankit.lock",
                     "scankit env check --since 2026-11-20", "scankit env check --since scankit.lock"},
        .statuses = {{kExitClean, say("no drift")},
                     {kExitUsage, say("usage error")},
                     {kExitInconclusive, say("inconclusive")},
                     {kExitDrift, say("drift")}},
        .trailing = {}});
  begin_group(*command, group_of_input());
  add_subject_options(*command, options->subject);
  command->add_option("--spec", options->spec, say("the spec [default: scankit.yaml]"))->type_name("FILE");
  command->add_option("--lock", options->lock, say("the lock [default: scankit.lock, if it exists]"))
      ->type_name("FILE");
  command
      ->add_option("--record", options->record,
                   say("compare this environment with the record of `env create`, by sizes and times only"))
      ->type_name("DIR")
      ->excludes("--python")
      ->excludes("--root")
      ->excludes("--from")
      ->excludes("--spec");
  command
      ->add_option("--since", options->since,
                   say("tell what changed since a date (UTC), an age such as 7d, or a lock, spec, record or "
                       "snapshot, and by which command or commit, where that is recorded"))
      ->type_name("DATE|FILE")
      ->excludes("--record")
      ->excludes("--from");
  add_cache(*command, options->cache_dir);
  begin_group(*command, group_of_output());
  add_redact(*command, options->redact);
  cli::add_show_options(*command, options->show, kExitDrift);
  command->callback([options, &exit_status] {
    cli::check_show_options(options->show);
    if (!options->since.empty() && (options->redact || !options->show.reports.empty()))
      throw CLI::ValidationError(say("--since prints text or --json only, without --redact and --report"));
    exit_status = !options->since.empty()   ? run_env_check_since(*options)
                  : options->record.empty() ? run_env_check(*options)
                                            : run_env_check_record(*options);
  });
}

void add_diff(CLI::App& env, int& exit_status) {
  const auto options = std::make_shared<EnvDiffOptions>();
  CLI::App* command = env.add_subcommand(
      "diff",
      say("compare any two of a spec, a lock, a record, a snapshot and an environment (its Python or its "
          "directory)"));
  note(*command,
       {.examples = {"scankit env diff scankit.lock .venv", "scankit env diff old.json new.json --json",
                     "scankit env diff .venv/.scankit/record.json .venv"},
        .statuses = {},
        .trailing = {}});
  command->add_option("a", options->left, say("left-hand side"))->required()->type_name("A");
  command->add_option("b", options->right, say("right-hand side"))->required()->type_name("B");
  command->add_flag("--json", options->json, say("print JSON on standard output"));
  add_cache(*command, options->cache_dir);
  add_redact(*command, options->redact);
  command->callback([options, &exit_status] { exit_status = run_env_diff(*options); });
}

void add_schema(CLI::App& env, int& exit_status) {
  CLI::App* command = env.add_subcommand("schema", say("print the JSON Schema of scankit.yaml, for editors"));
  note(*command, {.examples = {"scankit env schema", "scankit env schema > scankit.schema.json"},
                  .statuses = {},
                  .trailing = {}});
  command->callback([&exit_status] { exit_status = run_env_schema(); });
}

}  // namespace

void add_subject_options(CLI::App& command, SubjectOptions& options) {
  auto* python =
      command.add_option("--python", options.python,
                         say("the Python to look at [default: $VIRTUAL_ENV, ./.venv, $CONDA_PREFIX, PATH]"));
  python->type_name("PATH");
  auto* root = command.add_option("--root", options.root,
                                  say("look at an unpacked root file system; --python is a path inside it"));
  root->type_name("DIR");
  command.add_option("--from", options.from, say("look at a stored snapshot (- for standard input)"))
      ->type_name("SNAPSHOT")
      ->excludes(python)
      ->excludes(root);
}

void add_env_commands(CLI::App& app, int& exit_status) {
  CLI::App* env =
      app.add_subcommand("env", say("pin an environment, make it again, and report how it differs later"));
  env->require_subcommand(1);
  add_suggest_command(*env, exit_status);
  add_init(*env, exit_status);
  add_check(*env, exit_status);
  add_diff(*env, exit_status);
  add_lock_commands(*env, exit_status);
  add_create_commands(*env, exit_status);
  add_schema(*env, exit_status);
}

}  // namespace scankit::envspec
