// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace CLI {
class App;
}  // namespace CLI

namespace scankit {

// scankit completion SHELL | man. They tell of every command of `app`, so they are added to it last.
void add_shell_commands(CLI::App& app, int& exit_status);

}  // namespace scankit
