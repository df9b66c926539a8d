// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace CLI {
class App;
}

namespace scankit {

// scankit build | fix | restore. `exit_status` is set when a command of these runs.
void add_builder_commands(CLI::App& app, int& exit_status);

}  // namespace scankit
