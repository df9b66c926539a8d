// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "builder/compile/cache.h"
#include "builder/fix/transaction.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/checks/check.h"
#include "doctor/cli/commands.h"
#include "doctor/command_line/command_line.h"
#include "doctor/model/json.h"
#include "doctor/model/redact.h"
#include "doctor/report/doctor_document.h"
#include "doctor/report/escape.h"
#include "doctor/report/progress.h"
#include "envspec/cli/commands.h"
#include "envspec/create/create.h"
#include "envspec/export/export.h"

// `scankit env create` and `env sync`: their options, what they print, and their exit status.
namespace scankit::envspec {
namespace {

using CreateJson = nlohmann::ordered_json;

constexpr int kAnswerSchema = 1;

void add_cache_dir(CLI::App& command, std::string& folder) {
  command
      .add_option("--cache-dir", folder,
                  say("directory for the hashes of unchanged files [default: $XDG_CACHE_HOME/scankit]"))
      ->type_name("DIR");
}

void add_offline(CLI::App& command, std::string& folder) {
  command
      .add_option("--offline", folder,
                  say("query no index; install the files that `env fetch` wrote into this directory"))
      ->type_name("DIR");
}

void add_create(CLI::App& env, int& exit_status) {
  const auto options = std::make_shared<EnvCreateOptions>();
  CLI::App* command = env.add_subcommand(
      "create", say("make the environment of a lock or a spec, prove that it works, or leave nothing"));
  note(*command,
       {.examples = {"scankit env create .venv", "scankit env create .venv --lock envs/train.lock",
                     "scankit env create .venv --lock scankit.lock --offline wheels/",
                     "scankit env create .venv --spec scankit.yaml"},
        .statuses = {{kExitClean, say("the environment is there and works")},
                     {kExitUsage, say("usage error, or the lock cannot be installed here")},
                     {kExitInconclusive, say("it is there, and not everything could be verified")},
                     {kExitBuildFailed, say("the installation failed and left nothing")},
                     {kExitValidationFailed, say("what was installed does not work and was removed")}},
        .trailing = {}});
  command->add_option("dir", options->folder, say("directory to make; it must be empty or not exist"))
      ->required()
      ->type_name("DIR");
  auto* lock =
      command->add_option("--lock", options->lock, say("the lock [default: scankit.lock, if it exists]"));
  lock->type_name("FILE");
  command
      ->add_option(
          "--spec", options->spec,
          say("let the resolver of uv or pip choose within the ranges of this spec, and write the lock "
              "next to it"))
      ->type_name("FILE")
      ->excludes(lock);
  command
      ->add_option("--python", options->python,
                   say("the interpreter to make it with [default: of uv, pyenv or PATH]"))
      ->type_name("PATH");
  add_offline(*command, options->offline);
  constexpr unsigned kMostSeconds = 86400;
  command
      ->add_option("--timeout", options->node_deadline,
                   say("time limit of the index for naming the packages that it lacks [default: 120]"))
      ->type_name("SECONDS")
      ->check(CLI::Range(1u, kMostSeconds));
  add_cache_dir(*command, options->cache_dir);
  command->add_flag("--json", options->json, say("print JSON on standard output"));
  command->callback([options, &exit_status] { exit_status = run_env_create(*options); });
}

void add_sync(CLI::App& env, int& exit_status) {
  const auto options = std::make_shared<EnvSyncOptions>();
  CLI::App* command = env.add_subcommand(
      "sync", say("bring an existing environment to the lock; scankit restore takes it back"));
  note(*command, {.examples = {"scankit env sync", "scankit env sync .venv --lock envs/train.lock",
                               "scankit env sync --dry-run"},
                  .statuses = {{kExitClean, say("the environment is the locked one")},
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

}  // namespace

void add_create_commands(CLI::App& env, int& exit_status) {
  add_create(env, exit_status);
  add_sync(env, exit_status);
}

namespace {

bool is_a_file(const std::string& path) {
  return make_real_host()->exists(path_join(current_directory(), path));
}

// Without options the lock counts, since it is the exact one; a spec alone is resolved.
Result<CreateRequest> create_request(const EnvCreateOptions& options) {
  CreateRequest request;
  request.folder = options.folder;
  request.lock_file = options.lock;
  request.spec_file = options.spec;
  if (options.lock.empty() && options.spec.empty()) {
    if (is_a_file(kLockFile))
      request.lock_file = kLockFile;
    else if (is_a_file(kSpecFile))
      request.spec_file = kSpecFile;
    else
      return Error{
          Errc::NotFound, message("neither {} nor {} was found in this directory", kLockFile, kSpecFile),
          message("name one with --lock or --spec; scankit env lock writes a lock of an environment")};
  }
  const std::string beside = path_join(path_dirname(request.spec_file), kLockFile);
  if (!request.spec_file.empty() && is_a_file(beside))
    return Error{Errc::InvalidArgument, message("{} exists, and a new lock would replace it", beside),
                 message("make its environment: scankit env create {} --lock {}; or remove it first",
                         shell_quoted(options.folder), shell_quoted(beside))};
  request.python = options.python;
  request.offline = options.offline;
  request.cache_dir = options.cache_dir;
  request.index_deadline = std::chrono::seconds(options.node_deadline);
  request.make_lock = [options, request](const Subject& made) {
    EnvLockOptions lock;
    lock.spec = request.spec_file;
    lock.cache_dir = options.cache_dir;
    lock.node_deadline = options.node_deadline;
    return lock_environment(lock, made, "-");
  };
  return request;
}

int status_of(CreateStage stage) {
  if (const int signal = fix::Interruption::signal(); signal != 0) return 128 + signal;
  return stage == CreateStage::Refused      ? kExitUsage
         : stage == CreateStage::Installing ? kExitBuildFailed
                                            : kExitValidationFailed;
}

int status_of(const std::vector<ProofStep>& proof) {
  for (const ProofStep& step : proof)
    if (step.state != "passed") return kExitInconclusive;
  return kExitClean;
}

CreateJson proof_json(const std::vector<ProofStep>& proof) {
  CreateJson steps = CreateJson::array();
  for (const ProofStep& step : proof)
    steps.push_back({{"what", step.what},
                     {"state", step.state},
                     {"detail", english(step.detail)},
                     {"seconds", step.seconds}});
  return steps;
}

int tell_error(const char* command, const Error& error, bool json, CreateStage stage = CreateStage::Refused) {
  cli::report_error(error);
  const int status = status_of(stage);
  if (json)
    std::cout << json_document(CreateJson{{"schema", kAnswerSchema},
                                          {"command", command},
                                          {"state", "failed"},
                                          {"message", error.message.english()},
                                          {"hint", error.hint.english()},
                                          {"exit_status", status}});
  return status;
}

void put_line(const std::string& line) { std::cout << report::plain(line, false) << "\n"; }

// As the user's shell takes it.
std::string activation(const std::string& folder) {
  const auto line = [](const std::string& word, const std::string& file) {
    return shell_line(std::vector<std::string>{word, file});
  };
  const char* shell = std::getenv("SHELL");
  const std::string name = path_basename(shell == nullptr ? "" : shell);
  const std::string script = path_join(folder, "bin/activate");
  if (name == "fish") return line("source", script + ".fish");
  if (name == "csh" || name == "tcsh") return line("source", script + ".csh");
  return line(name == "bash" || name == "zsh" ? "source" : ".", script);
}

void print_proof(const std::vector<ProofStep>& proof) {
  std::vector<std::string> passed;
  for (const ProofStep& step : proof)
    if (step.state == "passed") passed.push_back(step.what);
  if (!passed.empty()) put_line(say("passed: {}", join(passed)));
  for (const ProofStep& step : proof)
    if (step.state != "passed") put_line(say("not verified: {}: {}", step.what, step.detail));
}

std::vector<std::string> english_lines(const std::vector<Message>& notes) {
  std::vector<std::string> lines;
  for (const Message& note : notes) lines.push_back(english(note));
  return lines;
}

CreateJson record_part(const EnvironmentRecord& record) {
  return {{"file", kRecordFile},
          {"signature", record.signature()},
          {"libraries", record.libraries.size()},
          {"content", record.content}};
}

void print_created(const EnvCreateOptions& options, const CreateResult& made, bool new_lock) {
  put_line(say_n(made.packages, "{} is ready: {} package, {}, Python {}, in {:.1f} s",
                 "{} is ready: {} packages, {}, Python {}, in {:.1f} s", options.folder, made.packages,
                 size_in_words(made.bytes), made.python, made.seconds));
  print_proof(made.record.proof);
  for (const Message& line : made.notes) put_line(say("note: {}", line));
  if (new_lock) put_line(say("lock: {}", made.lock_file));
  put_line(say("next: {}", activation(options.folder)));
}

}  // namespace

int run_env_create(const EnvCreateOptions& options) {
  const auto request = create_request(options);
  if (!request) return tell_error("env create", request.error(), options.json);
  CreateStage stage = CreateStage::Refused;
  const auto made = create_environment(*request, stage);
  if (!made) return tell_error("env create", made.error(), options.json, stage);
  const int status = status_of(made->record.proof);
  if (options.json)
    std::cout << json_document(CreateJson{{"schema", kAnswerSchema},
                                          {"command", "env create"},
                                          {"state", "created"},
                                          {"folder", made->folder},
                                          {"python", made->python},
                                          {"base_python", made->python_program},
                                          {"base_python_found_by", made->python_found_by},
                                          {"torch", made->torch},
                                          {"installer", made->installer},
                                          {"lock", made->lock_file},
                                          {"packages", made->packages},
                                          {"bytes", made->bytes},
                                          {"seconds", made->seconds},
                                          {"proof", proof_json(made->record.proof)},
                                          {"record", record_part(made->record)},
                                          {"names_its_directory", made->rewritten},
                                          {"notes", english_lines(made->notes)},
                                          {"exit_status", status}});
  else
    print_created(options, *made, !request->spec_file.empty());
  return status;
}

namespace {

void print_synced(const EnvSyncOptions& options, const SyncResult& synced) {
  const std::string& environment = synced.environment;
  if (synced.installed.empty() && synced.removed.empty()) {
    put_line(say("{} is the locked environment already, and nothing was changed", environment));
    return print_proof(synced.record.proof);
  }
  if (!synced.installed.empty()) put_line(say("install: {}", join(synced.installed)));
  if (!synced.removed.empty()) put_line(say("remove: {}", join(synced.removed)));
  if (options.dry_run) return put_line(say("Nothing was changed (--dry-run)."));
  put_line(say("{} is the locked environment now, in {:.1f} s", environment, synced.seconds));
  print_proof(synced.record.proof);
  for (const Message& line : synced.notes) put_line(say("note: {}", line));
  put_line(say("undo: scankit restore --python {}", shell_quoted(synced.python)));
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

namespace {

// Whether the record is of this lock; nothing is asked without one.
Outcome recorded_lock(const EnvironmentRecord& record, const std::string& lock_file) {
  Outcome outcome = asked("record-lock", message("Was the environment made from this lock?"));
  const auto lock = read_lock(lock_file);
  if (!lock) {
    not_known(outcome, lock.error().message);
    return outcome;
  }
  if (hash_of(*lock) == record.lock_sha256) return outcome;
  Finding finding;
  finding.cause = Cause::DriftLockFile;
  finding.subject = lock_file;
  finding.summary = message("the environment was made from another lock than {}", lock_file);
  finding.demanded_by = FileLine{lock_file, 0};
  drifted(outcome, std::move(finding));
  return outcome;
}

Outcome recorded_files(const std::string& folder, const EnvironmentRecord& record) {
  Outcome outcome = asked("record-files", message("Is every compiled file the one that was recorded?"));
  const std::string file = path_join(folder, kRecordFile);
  for (const std::string& path : changed_since(folder, record)) {
    Finding finding;
    finding.cause = Cause::DriftLockFile;
    finding.subject = path;
    finding.summary = message("{} has another size or time than {} says, or is missing", path, file);
    finding.demanded_by = FileLine{file, 0};
    drifted(outcome, std::move(finding));
  }
  return outcome;
}

}  // namespace

int run_env_check_record(const EnvCheckOptions& options) {
  const auto record = read_record(path_join(current_directory(), options.record));
  if (!record) {
    cli::report_error(record.error());
    return kExitUsage;
  }
  Report report;
  report.asked = Asked::Drift;
  report.compared_with.emplace_back("record", path_join(options.record, kRecordFile));
  report.outcomes.push_back(recorded_files(options.record, *record));
  const std::string lock = options.lock.empty() && is_a_file(kLockFile) ? kLockFile : options.lock;
  if (!lock.empty()) {
    report.compared_with.emplace_back("lock", lock);
    report.outcomes.push_back(recorded_lock(*record, lock));
  }
  checks::decide_root_cause(report);
  if (options.redact) report = redacted(std::move(report), own_names());
  const int found = cli::exit_status_of(report, options.show.fail_on, kExitDrift);
  return cli::first_that_counts({cli::show(report::doctor_views(report, found), options.show), found});
}

}  // namespace scankit::envspec
