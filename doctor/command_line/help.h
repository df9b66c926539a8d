// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "doctor/command_line/command_table.h"

namespace CLI {
class App;
}  // namespace CLI
// Help as uv and ruff print it: usage, arguments, options in named groups, examples, exit statuses.
// Everything comes from the command table, apart from what note() adds to a command.

namespace scankit {

// What `--help` prints, at most 100 columns wide.
std::string help_page(const CommandRow& command);

// "--log cannot be used with --all or --python. ...": all pairs of options that exclude each other, each
// pair once, and the options that need another one. "" if there are none.
std::string combinations(const CommandRow& command);

// "Exit status: 0 healthy, 1 something is broken"; "" if none has a special meaning.
std::string statuses_line(const CommandRow& command);

// What CLI11 has no place for. The formatter owns it, which all commands of a program share.
struct CommandNotes {
  std::vector<std::string> examples;                  // whole command lines; a test parses each of them
  std::vector<std::pair<int, std::string>> statuses;  // exit statuses that mean something special here
  std::string trailing;                               // what follows the options: "-- <COMMAND>"
};

// Call it before the first option or command is added: commands take the formatter and the help option
// from their parent when they are added.
void set_help_style(CLI::App& app);
// Stores the notes of a command. Without set_help_style() on the outermost command, as in a unit test,
// they are dropped.
void note(CLI::App& command, CommandNotes notes);
const CommandNotes* notes_of(const CLI::App& command);  // nullptr: none

// Options added from here on are listed under this heading.
void begin_group(CLI::App& command, const std::string& heading);
std::string group_of_input();   // which environment, file or module a command is about
std::string group_of_output();  // what it prints and writes

// scankit help [COMMAND...]. Added before or after the commands that it describes.
void add_help_command(CLI::App& app, int& exit_status);

// The help of a command that only groups others and was called without one of them; "" if the last parse
// was something else.
std::string help_of_bare_group(const CLI::App& app);

}  // namespace scankit
