// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "doctor/shell/completion.h"

namespace scankit {
namespace {

// Inside '...'; _arguments and _describe themselves take ':' '[' ']' and '\' for their own.
std::string zsh_quoted(const std::string& text) {
  std::string plain;
  for (const char c : text) {
    if (c == ':' || c == '[' || c == ']' || c == '\\') plain += '\\';
    plain += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return plain;
}

std::string function_of(const CommandRow& command) {
  std::string name = command.path.empty() ? "_scankit" : "_scankit_" + command.path;
  std::ranges::replace(name, ' ', '_');
  return name;
}

std::string action_of(const OptionRow& option) {
  if (!option.choices.empty()) return fmt::format("({})", fmt::join(option.choices, " "));
  return takes_path(option) ? "_files" : " ";
}

// '(-v --verbose)'{-v,--verbose}'[text]:VALUE:action'
std::string spec_of(const OptionRow& option) {
  std::string spec;
  const std::string star = option.repeats ? "*" : "";
  if (option.names.size() == 1)
    spec = "'" + star + option.names.front();
  else
    spec =
        fmt::format("{}{{{}}}'", option.repeats ? "'*'" : fmt::format("'({})'", fmt::join(option.names, " ")),
                    fmt::join(option.names, ","));
  spec += "[" + zsh_quoted(option.text) + "]";
  if (!option.value.empty()) spec += ":" + zsh_quoted(option.value) + ":" + action_of(option);
  return spec + "'";
}

std::string arguments_of(const CommandRow& command) {
  std::string lines;
  for (const OptionRow& option : command.options) lines += " \\\n    " + spec_of(option);
  for (const OptionRow& positional : command.positionals)
    lines += fmt::format(" \\\n    '{}:{}:{}'", positional.repeats ? "*" : "",
                         zsh_quoted(positional.names.front()), action_of(positional));
  return lines;
}

std::string leaf(const CommandRow& command) {
  return fmt::format("{}() {{\n  _arguments -s{}\n}}\n", function_of(command), arguments_of(command));
}

std::string branch(const CommandRow& command) {
  std::string script = fmt::format(
      "{}() {{\n  local curcontext=$curcontext state line\n  typeset -A opt_args\n  _arguments -C{} \\\n"
      "    '1:command:->command' \\\n    '*::argument:->rest'\n  case $state in\n    command)\n      local "
      "-a commands\n"
      "      commands=(\n",
      function_of(command), arguments_of(command));
  for (const CommandRow& inner : command.commands)
    script += fmt::format("        '{}:{}'\n", inner.name(), zsh_quoted(inner.text));
  script += "      )\n      _describe -t commands command commands ;;\n    rest)\n      case $words[1] in\n";
  for (const CommandRow& inner : command.commands)
    script += fmt::format("        {}) {} ;;\n", inner.name(), function_of(inner));
  return script + "      esac ;;\n  esac\n}\n";
}

}  // namespace

std::string zsh_completion(const CommandRow& table) {
  std::string script = "#compdef scankit\n# zsh completion of scankit, written by: scankit completion zsh\n";
  for (const CommandRow* command : all_commands(table))
    script += command->commands.empty() ? leaf(*command) : branch(*command);
  // Sourced by hand, or found in fpath under the name _scankit.
  return script +
         "if [ \"$funcstack[1]\" = _scankit ]; then\n  _scankit \"$@\"\nelse\n  compdef _scankit "
         "scankit\nfi\n";
}

}  // namespace scankit
