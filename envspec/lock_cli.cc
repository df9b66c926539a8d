// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "doctor/base/say.h"
#include "envspec/lock_commands.h"

namespace scankit {
namespace {

void add_lock(CLI::App& env, int& exit_status) {
  const auto options = std::make_shared<EnvLockOptions>();
  CLI::App* command = env.add_subcommand(
      "lock",
      say("write scankit.lock: exact versions, and the hash of every compiled file and of every wheel"));
  command->add_option("--python", options->subject.python,
                      say("the environment (default: $VIRTUAL_ENV, ./.venv, $CONDA_PREFIX, PATH)"));
  command->add_option("--root", options->subject.root,
                      say("an unpacked file system instead of the running one"));
  command->add_option("--spec", options->spec, say("the spec that it answers (default: ./scankit.yaml)"));
  command->add_option("--out", options->out, say("the file to write, or - (default: ./scankit.lock)"));
  command->add_flag("--offline", options->offline,
                    say("ask no index: hashes of wheels come from the old lock alone"));
  constexpr unsigned kLongest = 86400;
  command->add_option("--timeout", options->patience, say("seconds for the index to answer (default: 120)"))
      ->check(CLI::Range(1u, kLongest));
  command->add_option("--cache-dir", options->cache_dir,
                      say("where hashes of unchanged files are kept (default: $XDG_CACHE_HOME/scankit)"));
  command->callback([options, &exit_status] { exit_status = run_env_lock(*options); });
}

void add_export(CLI::App& env, int& exit_status) {
  const auto options = std::make_shared<EnvExportOptions>();
  CLI::App* command = env.add_subcommand("export", say("write the lock as other tools read it"));
  command->add_option("FORMAT", options->format, say("requirements, pylock, conda or dockerfile"))
      ->required()
      ->check(CLI::IsMember({"requirements", "pylock", "conda", "dockerfile"}));
  command->add_option("--lock", options->lock, say("the lock (default: ./scankit.lock)"));
  command->add_option(
      "--out", options->out,
      say("the file to write (default: standard output); what it refers to is put beside it"));
  command->add_option("--python", options->subject.python,
                      say("the environment that holds what was built here, to be packed as wheels"));
  command->add_flag("--partial", options->partial,
                    say("leave out, as a comment, what nothing can install again"));
  command->callback([options, &exit_status] { exit_status = run_env_export(*options); });
}

void add_fetch(CLI::App& env, int& exit_status) {
  const auto options = std::make_shared<EnvFetchOptions>();
  CLI::App* command =
      env.add_subcommand("fetch", say("download the wheels of the lock into a folder, their hashes checked"));
  command->add_option("--lock", options->lock, say("the lock (default: ./scankit.lock)"));
  command->add_option("--out", options->out, say("the folder (default: ./scankit-wheels)"));
  command->callback([options, &exit_status] { exit_status = run_env_fetch(*options); });
}

}  // namespace

void add_lock_commands(CLI::App& env, int& exit_status) {
  add_lock(env, exit_status);
  add_export(env, exit_status);
  add_fetch(env, exit_status);
}

}  // namespace scankit
