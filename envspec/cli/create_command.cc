// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/command_line/command_line.h"
#include "doctor/model/json.h"
#include "envspec/cli/commands.h"
#include "envspec/cli/create_answer.h"
#include "envspec/create/create.h"

// `scankit env create`: its options, what it prints, and its exit status.
namespace scankit::envspec {
namespace {

void add_create(CLI::App& env, int& exit_status) {
  const auto options = std::make_shared<EnvCreateOptions>();
  CLI::App* command = env.add_subcommand(
      "create", say("make the environment of a lock or a spec, prove that it works, or leave nothing"));
  note(*command,
       {.examples = {"scankit env create .venv", "scankit env create .venv --lock envs/train.lock",
                     "scankit env create .venv --lock scankit.lock --offline wheels/",
                     "scankit env create .venv --spec scankit.yaml",
                     "scankit env create ./env --spec scankit.yaml --installer conda"},
        .statuses = {{kExitClean, say("the environment is there and works")},
                     {kExitUsage, say("usage error, or the lock cannot be installed here")},
                     {kExitInconclusive, say("created, but not fully verified")},
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
                   say("the Python to create it with [default: found by uv, pyenv or PATH]"))
      ->type_name("PATH");
  command
      ->add_option(
          "--installer", options->installer,
          say("installer to use: uv, pip or conda [default: conda for a lock of conda's packages, else uv "
              "or pip]"))
      ->type_name("NAME")
      ->check(CLI::IsMember({"uv", "pip", "conda"}));
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
  request.installer = options.installer;
  request.offline = options.offline;
  request.cache_dir = options.cache_dir;
  request.index_deadline = std::chrono::seconds(options.node_deadline);
  request.make_lock = [options, request](const Subject& made, const installer::Installer& made_by) {
    EnvLockOptions lock;
    lock.spec = request.spec_file;
    lock.cache_dir = options.cache_dir;
    lock.node_deadline = options.node_deadline;
    lock.made_by = made_by;
    return lock_environment(lock, made, "-");
  };
  return request;
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
  put_line(say("next: {}", activation_line(made, options.folder)));
}

}  // namespace

void add_create_commands(CLI::App& env, int& exit_status) {
  add_create(env, exit_status);
  add_sync(env, exit_status);
}

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

}  // namespace scankit::envspec
