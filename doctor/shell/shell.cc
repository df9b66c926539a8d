// SPDX-License-Identifier: Apache-2.0
#include "doctor/shell/shell.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/base/tool_version.h"
#include "doctor/command_line/command_line.h"
#include "doctor/knowledge/faults.h"

namespace scankit::shell {

std::optional<std::string> completion_of(std::string_view shell, const CommandRow& table) {
  if (shell == "bash") return bash_completion(table);
  if (shell == "zsh") return zsh_completion(table);
  if (shell == "fish") return fish_completion(table);
  return std::nullopt;
}

namespace {

// The frame of the bash script. Between the two parts, bash_completion() writes the cases that only the
// command table knows. The loop finds the path of commands and skips the values of options. Bash splits
// words at '=' and ':' (COMP_WORDBREAKS): "--color=al" arrives as three words, so a "=" is not a value.
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

// All names of the command's options, for compgen -W.
std::string names_of(const CommandRow& command) {
  std::string names;
  for (const OptionRow& option : command.options)
    for (const std::string& name : option.names) names += (names.empty() ? "" : " ") + name;
  return names;
}

// What can be typed where no option begins: the commands below this one, or the values of
// its positionals.
std::string words_of(const CommandRow& command) {
  std::vector<std::string> words;
  for (const CommandRow& inner : command.commands) words.push_back(inner.name());
  for (const OptionRow& positional : command.positionals)
    words.insert(words.end(), positional.choices.begin(), positional.choices.end());
  return fmt::format("{}", fmt::join(words, " "));
}

// The pattern of a case statement over "PATH:WORD", such as 'doctor:--log' | 'doctor:-l'.
std::string patterns(const CommandRow& command, const OptionRow& option) {
  std::string all;
  for (const std::string& name : option.names)
    all += fmt::format("{}'{}:{}'", all.empty() ? "" : " | ", command.path, name);
  return all;
}

}  // namespace

std::string bash_completion(const CommandRow& table) {
  std::string script{kBegin};
  // First part, inside the loop over the words: which words lead to a command, and which
  // options take a value.
  for (const CommandRow* command : all_commands(table)) {
    for (const CommandRow& inner : command->commands)
      script += fmt::format("      '{}:{}') path='{}' ;;\n", command->path, inner.name(), inner.path);
    for (const OptionRow& option : command->options)
      if (!option.value.empty())
        script += fmt::format("      {}) takes=yes ;;\n", patterns(*command, option));
  }
  // Second part: the values of the option before the cursor.
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
  // Third part: the options and words of the command that was found; kEnd chooses between them.
  script += "  esac\n  local options='' words=''\n  case \"$path\" in\n";
  for (const CommandRow* command : all_commands(table))
    script += fmt::format("    '{}') options='{}' words='{}' ;;\n", command->path, names_of(*command),
                          words_of(*command));
  return script + std::string(kEnd);
}

namespace {

// Between single quotes fish gives a meaning only to "\\" and "\'".
std::string fish_quoted(std::string text) {
  for (std::size_t at = 0; (at = text.find_first_of("\\'", at)) != std::string::npos; at += 2)
    text.insert(at, 1, '\\');
  return "'" + text + "'";
}

// A function that prints the path to which the words so far lead: "ci run". It skips options and their
// values. __scankit_at compares this path; every completion has it as its condition.
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
         // Without -f fish would offer file names everywhere; options and positionals that take a path
         // get them back with -F.
         "complete -c scankit -f\n";
}

// The line that completes one option. -r: the option needs a value.
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

namespace {

// Text inside '...' in a specification of _arguments or _describe, which give ':' '[' ']' and
// '\' a meaning.
std::string zsh_quoted(const std::string& text) {
  std::string plain;
  for (const char c : text) {
    if (c == ':' || c == '[' || c == ']' || c == '\\') plain += '\\';
    plain += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return plain;
}

// The name of the shell function that completes one command: _scankit_ci_run.
std::string function_of(const CommandRow& command) {
  std::string name = command.path.empty() ? "_scankit" : "_scankit_" + command.path;
  std::ranges::replace(name, ' ', '_');
  return name;
}

// The action of a specification: the values, file names, or a blank, which completes nothing.
std::string action_of(const OptionRow& option) {
  if (!option.choices.empty()) return fmt::format("({})", fmt::join(option.choices, " "));
  return takes_path(option) ? "_files" : " ";
}

// The specification of one option for _arguments: '(-v --verbose)'{-v,--verbose}'[text]:VALUE:action'.
// The list in parentheses keeps zsh from offering an option again; a star allows it to be repeated.
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

// The function of a command without commands below it. -s: single-letter options may be combined.
std::string leaf(const CommandRow& command) {
  return fmt::format("{}() {{\n  _arguments -s{}\n}}\n", function_of(command), arguments_of(command));
}

// The function of a command with commands below it. It completes their names as the first word, and calls
// the function of the one that was typed for the rest.
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
  // The same file works in both ways: sourced by hand, where it registers itself, and found in fpath
  // under the name _scankit, where the first call runs the file as a function.
  return script +
         "if [ \"$funcstack[1]\" = _scankit ]; then\n  _scankit \"$@\"\nelse\n  compdef _scankit "
         "scankit\nfi\n";
}

namespace {

// Adds the causes as values of explain's argument. The parser itself accepts any word there, in order to
// suggest the nearest cause.
CommandRow table_with_causes(const CLI::App& app) {
  CommandRow table = command_table(app);
  for (CommandRow& command : table.commands)
    if (command.path == "explain")
      for (OptionRow& positional : command.positionals)
        for (const knowledge::FaultClass& fault : knowledge::fault_classes())
          positional.choices.push_back(fault.id);
  return table;
}

}  // namespace

void add_shell_commands(CLI::App& app, int& exit_status) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* completion = app.add_subcommand("completion", say("print the completion script for a shell"));
  note(*completion,
       {.examples = {"scankit completion bash", "scankit completion zsh"}, .statuses = {}, .trailing = {}});
  completion->add_option("shell", *shell, say("the shell"))
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  // The table is made when the command runs, so it contains every command, also those added later.
  completion->callback([shell, &app, &exit_status] {
    std::fputs(completion_of(*shell, table_with_causes(app)).value_or("").c_str(), stdout);
    exit_status = kExitClean;
  });
  CLI::App* manual = app.add_subcommand("man", say("print the manual page, for man -l -"));
  note(*manual,
       {.examples = {"scankit man | man -l -", "scankit man > scankit.1"}, .statuses = {}, .trailing = {}});
  // Hidden: it is for the generator of the site (ci/docs), not for people.
  const auto as_data = std::make_shared<bool>(false);
  manual->add_flag("--json", *as_data, say("print every command and option as JSON"))->group("");
  manual->callback([as_data, &app, &exit_status] {
    const CommandRow table = command_table(app);
    std::fputs((*as_data ? commands_json(table, kToolVersion) : manual_page(table, kToolVersion)).c_str(),
               stdout);
    exit_status = kExitClean;
  });
}

}  // namespace scankit::shell
