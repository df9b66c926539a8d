// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "doctor/base/say.h"
#include "doctor/command_line/help.h"
#include "envspec/cli/lock_commands.h"

namespace scankit {
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
                    say("ask no index; hashes of wheels come from the old lock only"));
  constexpr unsigned kLongest = 86400;
  command->add_option("--timeout", options->patience, say("time limit of the index [default: 120]"))
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
                               "scankit env export dockerfile --out docker/Dockerfile"},
                  .statuses = {},
                  .trailing = {}});
  command->add_option("format", options->format, say("format to write"))
      ->required()
      ->check(CLI::IsMember({"requirements", "pylock", "conda", "dockerfile"}));
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
  command->add_flag("--partial", options->partial, say("turn what cannot be installed again into a comment"));
  command->callback([options, &exit_status] { exit_status = run_env_export(*options); });
}

void add_fetch(CLI::App& env, int& exit_status) {
  const auto options = std::make_shared<EnvFetchOptions>();
  CLI::App* command = env.add_subcommand(
      "fetch", say("download the wheels of the lock into a directory and check their hashes"));
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

}  // namespace scankit
