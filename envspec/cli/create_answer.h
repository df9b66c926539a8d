// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "envspec/create/create.h"

namespace CLI {
class App;
}

// What `env create`, `env sync` and `env check --record` have in common: options, lines, JSON, exit status.
namespace scankit::envspec {

using CreateJson = nlohmann::ordered_json;

inline constexpr int kAnswerSchema = 1;

void add_cache_dir(CLI::App& command, std::string& folder);
void add_offline(CLI::App& command, std::string& folder);

int status_of(CreateStage stage);                    // of a failure
int status_of(const std::vector<ProofStep>& proof);  // of a success
// Reports the error, with `json` on standard output too, and returns the exit status.
int tell_error(const char* command, const Error& error, bool json, CreateStage stage = CreateStage::Refused);

CreateJson proof_json(const std::vector<ProofStep>& proof);
std::vector<std::string> english_lines(const std::vector<Message>& notes);
void put_line(const std::string& line);
void print_proof(const std::vector<ProofStep>& proof);

// The line that activates what was made in `folder`, as the user named it, for the shell of $SHELL (activation.cc).
std::string activation_line(const CreateResult& made, const std::string& folder);

void add_sync(CLI::App& env, int& exit_status);

}  // namespace scankit::envspec
