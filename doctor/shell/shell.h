// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doctor/command_line/command_line.h"

namespace CLI {
class App;
}  // namespace CLI

namespace scankit::shell {

// scankit completion SHELL and scankit man. Both describe every command of `app`.
void add_shell_commands(CLI::App& app, int& exit_status);

// Scripts that complete the command line. Each needs no other package, such as bash-completion, and
// starts no program. `table` is that of the outermost command.
std::string bash_completion(const CommandRow& table);
std::string zsh_completion(const CommandRow& table);
std::string fish_completion(const CommandRow& table);

// "bash", "zsh" or "fish"; nothing of another shell.
std::optional<std::string> completion_of(std::string_view shell, const CommandRow& table);

// scankit(1), for man and mandoc.
std::string manual_page(const CommandRow& table, std::string_view version);

// The same as data, for pages that are generated from it: commands-1.json of doctor/report/schema.
std::string commands_json(const CommandRow& table, std::string_view version);

// One sentence for each constant of exit_status.h. A command may give its statuses a narrower meaning.
std::vector<std::pair<int, std::string>> exit_statuses();

}  // namespace scankit::shell
