// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

// Help as uv and ruff print it: usage, arguments, options in named groups, examples, exit statuses.
namespace scankit {

// What CLI11 has no place for. It belongs to the formatter, which all commands of a program share.
struct CommandNotes {
  std::vector<std::string> examples;                  // whole command lines; a test parses each of them
  std::vector<std::pair<int, std::string>> statuses;  // exit statuses that mean something special here
  std::string trailing;                               // what follows the options: "-- <COMMAND>"
};

// Before the first option or command is added: commands take formatter and help option over.
void set_help_style(CLI::App& app);
// Without set_help_style() on the outermost command (in a unit test) notes are dropped.
void note(CLI::App& command, CommandNotes notes);
const CommandNotes* notes_of(const CLI::App& command);  // nullptr: none

// Options added from here on are listed under this heading.
void begin_group(CLI::App& command, const std::string& heading);
std::string group_of_input();   // which environment, file or module a command is about
std::string group_of_output();  // what it prints and writes

// scankit help [COMMAND...]. Added before or after the commands that it describes.
void add_help_command(CLI::App& app, int& exit_status);

// The help of a command that is nothing but a group of others and was called without one of them; "" where
// the last parse was not that.
std::string help_of_bare_group(const CLI::App& app);

}  // namespace scankit
