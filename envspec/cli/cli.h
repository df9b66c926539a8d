// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace CLI {
class App;
}

namespace scankit::envspec {

// scankit env ... `exit_status` is set when a command of these runs.
void add_env_commands(CLI::App& app, int& exit_status);

}  // namespace scankit::envspec
