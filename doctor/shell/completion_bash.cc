// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "doctor/shell/completion.h"

namespace scankit {
namespace {

// Bash cuts words at '=' and ':' (COMP_WORDBREAKS): "--color=al" arrives as three words.
constexpr std::string_view kBegin = R"(# bash completion of scankit, written by: scankit completion bash
_scankit() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} path='' word i takes=no
  COMPREPLY=()
  [ "$current" != = ] || current=''
  [ "$before" != = ] || before=${COMP_WORDS[COMP_CWORD - 2]}
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [ "$takes" = yes ] && [ "$word" != = ]; then takes=no && continue; fi
    case "$path:$word" in
)";
constexpr std::string_view kEnd = R"(  esac
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
    *) [ -z "$words" ] || COMPREPLY=($(compgen -W "$words" -- "$current")) ;;
  esac
}
complete -o default -F _scankit scankit
)";

std::string names_of(const CommandRow& command) {
  std::string names;
  for (const OptionRow& option : command.options)
    for (const std::string& name : option.names) names += (names.empty() ? "" : " ") + name;
  return names;
}

// What stands where no option begins: the commands of this one, or the values of its positional.
std::string words_of(const CommandRow& command) {
  std::vector<std::string> words;
  for (const CommandRow& inner : command.commands) words.push_back(inner.name());
  for (const OptionRow& positional : command.positionals)
    words.insert(words.end(), positional.choices.begin(), positional.choices.end());
  return fmt::format("{}", fmt::join(words, " "));
}

std::string patterns(const CommandRow& command, const OptionRow& option) {
  std::string all;
  for (const std::string& name : option.names)
    all += fmt::format("{}'{}:{}'", all.empty() ? "" : " | ", command.path, name);
  return all;
}

}  // namespace

std::string bash_completion(const CommandRow& table) {
  std::string script{kBegin};
  for (const CommandRow* command : all_commands(table)) {
    for (const CommandRow& inner : command->commands)
      script += fmt::format("      '{}:{}') path='{}' ;;\n", command->path, inner.name(), inner.path);
    for (const OptionRow& option : command->options)
      if (!option.value.empty())
        script += fmt::format("      {}) takes=yes ;;\n", patterns(*command, option));
  }
  script += "    esac\n  done\n  case \"$path:$before\" in\n";
  for (const CommandRow* command : all_commands(table))
    for (const OptionRow& option : command->options) {
      if (option.value.empty()) continue;
      script += fmt::format("    {}) ", patterns(*command, option));
      if (!option.choices.empty())
        script +=
            fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$current\")) && ", fmt::join(option.choices, " "));
      script += "return ;;\n";  // else the names of files: -o default
    }
  script += "  esac\n  local options='' words=''\n  case \"$path\" in\n";
  for (const CommandRow* command : all_commands(table))
    script += fmt::format("    '{}') options='{}' words='{}' ;;\n", command->path, names_of(*command),
                          words_of(*command));
  return script + std::string(kEnd);
}

}  // namespace scankit
