// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "doctor/shell/completion.h"

namespace scankit {
namespace {

std::string fish_quoted(std::string text) {
  for (std::size_t at = 0; (at = text.find_first_of("\\'", at)) != std::string::npos; at += 2)
    text.insert(at, 1, '\\');
  return "'" + text + "'";
}

// Where the words so far lead: the longest path of commands, options and their values aside.
std::string finder(const CommandRow& table) {
  std::string script =
      "# fish completion of scankit, written by: scankit completion fish\n"
      "function __scankit_path\n"
      "  set -l path ''\n"
      "  set -l takes no\n"
      "  for word in (commandline -opc)[2..-1]\n"
      "    if test $takes = yes\n"
      "      set takes no\n"
      "      continue\n"
      "    end\n"
      "    switch \"$path:$word\"\n";
  for (const CommandRow* command : all_commands(table)) {
    for (const CommandRow& inner : command->commands)
      script +=
          fmt::format("      case '{}:{}'\n        set path '{}'\n", command->path, inner.name(), inner.path);
    std::string taking;
    for (const OptionRow& option : command->options)
      if (!option.value.empty())
        for (const std::string& name : option.names) taking += fmt::format(" '{}:{}'", command->path, name);
    if (!taking.empty()) script += fmt::format("      case{}\n        set takes yes\n", taking);
  }
  return script +
         "    end\n  end\n  echo $path\nend\n"
         "function __scankit_at\n  test (__scankit_path) = \"$argv\"\nend\n"
         "complete -c scankit -f\n";
}

std::string line_of(const CommandRow& command, const OptionRow& option) {
  std::string line = fmt::format("complete -c scankit -n '__scankit_at {}'", command.path);
  for (const std::string& name : option.names)
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  line += " -d " + fish_quoted(option.text);
  if (!option.value.empty()) line += " -r";
  if (!option.choices.empty())
    line += fmt::format(" -f -a '{}'", fmt::join(option.choices, " "));
  else if (takes_path(option))
    line += " -F";
  return line + "\n";
}

}  // namespace

std::string fish_completion(const CommandRow& table) {
  std::string script = finder(table);
  for (const CommandRow* command : all_commands(table)) {
    const std::string here = fmt::format("complete -c scankit -n '__scankit_at {}'", command->path);
    for (const CommandRow& inner : command->commands)
      script += fmt::format("{} -a {} -d {}\n", here, inner.name(), fish_quoted(inner.text));
    for (const OptionRow& positional : command->positionals) {
      if (!positional.choices.empty())
        script += fmt::format("{} -a '{}' -d {}\n", here, fmt::join(positional.choices, " "),
                              fish_quoted(positional.text));
      else if (takes_path(positional))
        script += here + " -F\n";
    }
    for (const OptionRow& option : command->options) script += line_of(*command, option);
  }
  return script;
}

}  // namespace scankit
