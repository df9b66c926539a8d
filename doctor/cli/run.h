// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/cli/commands.h"

namespace CLI {
class App;
}  // namespace CLI

// scankit run: the user's command, and a diagnosis if it fails.
namespace scankit {

struct RunOptions {
  std::vector<std::string> command;
  std::string python;  // the interpreter to diagnose; "" for the one that failed
  std::string log;     // where to write the kept output
  std::string json;    // where to write the report as JSON
  bool redact = false;
  ImportPolicy imports = ImportPolicy::IfOursToRun;
  ShowOptions show;  // without `json` and `fail_on`
};
// Returns the command's exit status. If a signal ended the command, this process ends by the same signal.
int run_run(const RunOptions& options);

// Adds the command. `words` is the command line behind the program's name: what follows "--" belongs to the
// user's command and is taken out of it.
void add_run_command(CLI::App& app, int& exit_status, std::vector<std::string>& words);

}  // namespace scankit
