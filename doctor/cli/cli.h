// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace scankit {

// Adds scankit doctor, snapshot, explain and selftest. `exit_status` is set when one of them runs.
void add_doctor_commands(CLI::App& app, int& exit_status);

// Adds --budget, the time limit of the whole run, to a command.
CLI::Option* add_budget_option(CLI::App& command, std::string& budget);

}  // namespace scankit
