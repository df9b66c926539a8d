// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace scankit {

// Options of scankit itself and the commands of every component. `words` is the command line behind the
// program's name: what belongs to another program (behind "--") is taken out of it. `exit_status` is set when
// a command runs.
void add_all_commands(CLI::App& app, int& exit_status, std::vector<std::string>& words);

// What `scankit --version --json` prints: doctor/report/schema/version-1.json.
std::string version_json();

// Chooses the language, parses the command line and runs the chosen command; the exit status of the process.
int run_scankit(int argc, char** argv);

}  // namespace scankit
