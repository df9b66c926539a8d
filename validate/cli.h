// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace CLI {
class App;
}

namespace scankit::validate {

// `scankit validate`. Sets `exit_status` when the command was the one that ran.
void add_validate_commands(CLI::App& app, int& exit_status);

}  // namespace scankit::validate
