// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/command_line/command_line.h"
#include "doctor/model/json.h"
#include "envspec/cli/commands.h"
#include "envspec/cli/create_answer.h"

// `scankit env sync`: its options, what it prints, and its exit status.
namespace scankit::envspec {
namespace {

std::vector<std::string> lines_of_builds(const std::vector<SourceBuild>& builds) {
  std::vector<std::string> lines;
  for (const SourceBuild& one : builds)
    lines.push_back(say("{}=={} from {}", one.name, one.version, one.archive.file));
  return lines;
}

CreateJson built_json(const SyncResult& synced) {
  CreateJson built = CreateJson::array();
  for (const SourceBuild& one : synced.built)
    built.push_back({{"name", one.name},
                     {"version", one.version},
                     {"archive", one.archive.file},
                     {"sha256", one.archive.sha256}});
  return built;
}

// Where nothing is to be installed, built or removed. A plan compares versions and compiled files and proves nothing.
std::string unchanged_line(const EnvSyncOptions& options, const SyncResult& synced) {
  if (options.dry_run)
    return synced.kept.empty()
               ? say("nothing to change in {}: its packages have the locked versions and compiled files "
                     "(--dry-run runs no other check)",
                     synced.environment)
               : say("nothing to change in {}: its packages have the locked versions, and these were built "
                     "from their locked archives: {} (--dry-run runs no other check)",
                     synced.environment, join(lines_of_builds(synced.kept)));
  if (status_of(synced.record.proof) == kExitClean)
    return say("{} matches the lock already, and nothing was changed", synced.environment);
  const bool all_built = std::ranges::all_of(synced.record.proof, [&](const ProofStep& step) {
    return step.state != "not_verified" || std::ranges::any_of(synced.kept, [&](const SourceBuild& one) {
             return step.what == build_step(one.name);
           });
  });
  return all_built
             ? say("nothing was changed in {}: what differs from the lock was built from its archive",
                   synced.environment)
             : say("nothing was changed in {}, and not everything could be verified", synced.environment);
}

void print_synced(const EnvSyncOptions& options, const SyncResult& synced) {
  const std::string& environment = synced.environment;
  const bool unchanged = synced.installed.empty() && synced.built.empty() && synced.removed.empty();
  if (unchanged) put_line(unchanged_line(options, synced));
  if (!synced.installed.empty()) put_line(say("install: {}", join(synced.installed)));
  if (!synced.built.empty()) put_line(say("build: {}", join(lines_of_builds(synced.built))));
  if (!synced.removed.empty()) put_line(say("remove: {}", join(synced.removed)));
  if (!unchanged && !options.dry_run)
    put_line(status_of(synced.record.proof) == kExitClean
                 ? say("{} matches the lock now, in {:.1f} s", environment, synced.seconds)
                 : say("{} was changed, in {:.1f} s", environment, synced.seconds));
  print_proof(synced.record.proof);
  for (const Message& line : synced.notes) put_line(say("note: {}", line));
  if (options.dry_run) return put_line(say("Nothing was changed (--dry-run)."));
  if (!unchanged) put_line(say("undo: scankit restore --python {}", shell_quoted(synced.python)));
}

}  // namespace

int run_env_sync(const EnvSyncOptions& options) {
  SyncRequest request;
  request.python = options.folder.empty() ? options.python : options.folder;
  request.lock_file = options.lock.empty() ? kLockFile : options.lock;
  request.offline = options.offline;
  request.cache_dir = options.cache_dir;
  request.dry_run = options.dry_run;
  request.in_use = options.in_use;
  CreateStage stage = CreateStage::Refused;
  const auto synced = sync_environment(request, stage);
  if (!synced) return tell_error("env sync", synced.error(), options.json, stage);
  const int status = status_of(synced->record.proof);
  if (options.json)
    std::cout << json_document(CreateJson{{"schema", kAnswerSchema},
                                          {"command", "env sync"},
                                          {"state", options.dry_run           ? "planned"
                                                    : synced->journal.empty() ? "unchanged"
                                                                              : "synced"},
                                          {"environment", synced->environment},
                                          {"installer", synced->installer},
                                          {"installed", synced->installed},
                                          {"built", built_json(*synced)},
                                          {"removed", synced->removed},
                                          {"journal", synced->journal},
                                          {"seconds", synced->seconds},
                                          {"proof", proof_json(synced->record.proof)},
                                          {"notes", english_lines(synced->notes)},
                                          {"exit_status", status}});
  else
    print_synced(options, *synced);
  return status;
}

void add_sync(CLI::App& env, int& exit_status) {
  const auto options = std::make_shared<EnvSyncOptions>();
  CLI::App* command = env.add_subcommand(
      "sync", say("bring an existing environment to the lock; scankit restore takes it back"));
  note(*command,
       {.examples = {"scankit env sync", "scankit env sync .venv --lock envs/train.lock",
                     "scankit env sync --dry-run"},
        .statuses = {{kExitClean,
                      say("the environment matches the lock; with --dry-run: what would change is known")},
                     {kExitUsage, say("usage error, or the lock cannot be installed here")},
                     {kExitInconclusive, say("it is, and not everything could be verified")},
                     {kExitBuildFailed, say("the installation failed and changed nothing")},
                     {kExitValidationFailed, say("the result did not work and was undone")}},
        .trailing = {}});
  auto* folder = command->add_option("dir", options->folder, say("the environment's directory"));
  folder->type_name("DIR");
  command
      ->add_option("--python", options->python,
                   say("the Python of the environment [default: $VIRTUAL_ENV, ./.venv, $CONDA_PREFIX, PATH]"))
      ->type_name("PATH")
      ->excludes(folder);
  command->add_option("--lock", options->lock, say("the lock [default: scankit.lock]"))->type_name("FILE");
  add_offline(*command, options->offline);
  add_cache_dir(*command, options->cache_dir);
  command->add_flag("--in-use", options->in_use, say("also while processes run from the environment"));
  command->add_flag("--dry-run", options->dry_run, say("print what would change, and change nothing"));
  command->add_flag("--json", options->json, say("print JSON on standard output"));
  command->callback([options, &exit_status] { exit_status = run_env_sync(*options); });
}

}  // namespace scankit::envspec
