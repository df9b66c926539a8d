// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

// The commands and options as CLI11 knows them, as plain values: what help, a shell's completion and the
// manual page are written from, so that none of them can describe an option that does not exist.
namespace scankit {

struct OptionRow {
  std::vector<std::string> names;            // "-v", "--verbose"; of a positional its name alone
  std::string text;                          // one phrase
  std::string value;                         // what stands for its value in the help, "FILE"; "" for a flag
  std::vector<std::string> choices;          // all accepted values; empty where any value is accepted
  std::string group;                         // heading in the help
  std::string fallback;                      // default that CLI11 knows; most are part of the text
  std::vector<std::string> excludes, needs;  // long names of other options
  bool repeats = false, required = false, value_optional = false;
};

// One command with everything below it. The row of scankit itself is the root.
struct CommandRow {
  std::string path;  // "ci run"; "" of scankit itself
  std::string text;
  std::vector<OptionRow> options, positionals;
  std::vector<CommandRow> commands;
  std::vector<std::string> examples;                  // whole command lines
  std::vector<std::pair<int, std::string>> statuses;  // exit statuses that mean something special here
  std::string trailing;                               // what follows the options: "-- <COMMAND>"

  // The last word of the path. For scankit itself: "".
  std::string name() const { return path.substr(path.rfind(' ') + 1); }
};

// Of `app` and all commands below it; hidden ones are left out.
CommandRow command_table(const CLI::App& app);

// The table and everything in it, from outside in.
std::vector<const CommandRow*> all_commands(const CommandRow& table);

// Whether the name of the value says that it is a path; shells then complete file names.
bool takes_path(const OptionRow& option);

// "<FILE>", "<auto|always|never>", "[<OTHER>]": a value as help and manual show it.
std::string value_shown(const OptionRow& option);

}  // namespace scankit
