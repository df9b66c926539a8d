// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

// The commands and options as CLI11 knows them, as plain values: what help, a shell's completion and the
// manual page are written from, so that none of them can describe an option that does not exist. Also what is
// said of a command line that cannot be used.
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

// Help as uv and ruff print it: usage, arguments, options in named groups, examples, exit statuses.
// Everything comes from the command table, apart from what note() adds to a command.

// "scankit doctor [OPTIONS] <COMMAND>".
std::string usage_of(const CommandRow& command);

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

// What is wrong with a command line, in plain words and in the user's language. CLI11 has no catalogue: its
// errors are told apart by their class and taken to pieces.

// One line, with what was probably meant and the help that shows what is accepted: "unexpected argument
// '--pyton'; did you mean '--python'? (see: scankit doctor --help)". `app` is the outermost command, after
// the parse that threw.
std::string usage_problem(const CLI::App& app, const CLI::ParseError& problem);

// For a word that is not in `known`: the sentence, with the nearest known word if there is one. A value
// after "=" is not compared.
// "unexpected argument 'docter'; did you mean 'doctor'?"
std::string unexpected_argument(const std::string& word, const std::vector<std::string>& known);

}  // namespace scankit
