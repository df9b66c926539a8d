// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace scankit {

// scankit completion SHELL and scankit man. Both describe every command of `app`.
void add_shell_commands(CLI::App& app, int& exit_status);

}  // namespace scankit
