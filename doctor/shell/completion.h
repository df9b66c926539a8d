// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "doctor/command_line/command_table.h"

namespace scankit {

// Scripts that complete the command line; each stands alone (no bash-completion package), and starts nothing.
std::string bash_completion(const CommandRow& table);
std::string zsh_completion(const CommandRow& table);
std::string fish_completion(const CommandRow& table);

// "bash", "zsh" or "fish"; nothing of another shell.
std::optional<std::string> completion_of(std::string_view shell, const CommandRow& table);

// scankit(1), for man and mandoc.
std::string manual_page(const CommandRow& table, std::string_view version);

}  // namespace scankit
