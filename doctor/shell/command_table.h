// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

// The commands and options as CLI11 knows them, as plain values: what a shell's completion and the manual
// page are written from, so that neither can tell of an option that is not there.
namespace scankit {

struct OptionRow {
  std::vector<std::string> names;    // "-v", "--verbose"; of a positional its name alone
  std::string text;                  // one sentence
  std::string value;                 // what stands for its value in the help, "FILE"; "" for a flag
  std::vector<std::string> choices;  // all values that are taken; empty where any is
  bool repeats = false, required = false;
};

struct CommandRow {
  std::string path;  // "ci run"; "" of scankit itself
  std::string text;
  std::vector<OptionRow> options, positionals;
  std::vector<CommandRow> commands;

  std::string name() const { return path.substr(path.rfind(' ') + 1); }
};

CommandRow command_table(const CLI::App& app);

// The table and everything in it, from outside in.
std::vector<const CommandRow*> all_commands(const CommandRow& table);

// Whether such a value is a path, which shells complete by themselves.
bool takes_path(const OptionRow& option);

}  // namespace scankit
