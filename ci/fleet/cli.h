// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace scankit {

// scankit fleet ... `exit_status` is set when a command of these runs. `words`, the command line, loses those
// that are for Slurm and for the nodes: CLI11 would take them for ours.
void add_fleet_commands(CLI::App& app, int& exit_status, std::vector<std::string>& words);

}  // namespace scankit
