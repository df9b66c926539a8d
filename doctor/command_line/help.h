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

namespace scankit {

// What `--help` prints, at most 100 columns wide.
std::string help_page(const CommandRow& command);

// "--log cannot be used with --all or --python. ...": all pairs of options that exclude each other, each pair
// once, and the options that need another. "" where there is none.
std::string combinations(const CommandRow& command);

// "exit status: 0 healthy, 1 something is broken"; "" where none is special.
std::string statuses_line(const CommandRow& command);

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
