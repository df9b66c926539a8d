// SPDX-License-Identifier: Apache-2.0
#include "doctor/shell/completion.h"

namespace scankit {

std::optional<std::string> completion_of(std::string_view shell, const CommandRow& table) {
  if (shell == "bash") return bash_completion(table);
  if (shell == "zsh") return zsh_completion(table);
  if (shell == "fish") return fish_completion(table);
  return std::nullopt;
}

}  // namespace scankit
