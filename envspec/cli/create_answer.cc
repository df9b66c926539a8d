// SPDX-License-Identifier: Apache-2.0
#include "envspec/cli/create_answer.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "builder/fix/transaction.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/cli/commands.h"
#include "doctor/command_line/command_line.h"
#include "doctor/model/json.h"
#include "doctor/report/escape.h"

namespace scankit::envspec {

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

int status_of(CreateStage stage) {
  if (const int signal = fix::Interruption::signal(); signal != 0) return 128 + signal;
  return stage == CreateStage::Refused      ? kExitUsage
         : stage == CreateStage::Installing ? kExitBuildFailed
                                            : kExitValidationFailed;
}

int status_of(const std::vector<ProofStep>& proof) {
  for (const ProofStep& step : proof)
    if (step.state == "not_verified") return kExitInconclusive;
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

int tell_error(const char* command, const Error& error, bool json, CreateStage stage) {
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

void print_proof(const std::vector<ProofStep>& proof) {
  std::vector<std::string> passed;
  for (const ProofStep& step : proof)
    if (step.state == "passed") passed.push_back(step.what);
  if (!passed.empty()) put_line(say("passed: {}", join(passed)));
  for (const ProofStep& step : proof) {
    if (step.state == "not_verified") put_line(say("not verified: {}: {}", step.what, step.detail));
    if (step.state == "nothing_to_check") put_line(say("nothing to check: {}: {}", step.what, step.detail));
  }
}

std::vector<std::string> english_lines(const std::vector<Message>& notes) {
  std::vector<std::string> lines;
  for (const Message& note : notes) lines.push_back(english(note));
  return lines;
}

}  // namespace scankit::envspec
