// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace scankit {

// scankit doctor | snapshot | explain. `exit_status` is set when a command of these runs.
void add_doctor_commands(CLI::App& app, int& exit_status);

// --budget 20s, of commands that end in time, whatever they look at.
CLI::Option* add_budget_option(CLI::App& command, std::string& budget);

}  // namespace scankit
