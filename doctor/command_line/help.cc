// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <set>

#include "doctor/base/columns.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/command_line/command_line.h"

namespace scankit {
namespace {

// All widths are in columns. The page does not follow the width of the terminal, so that it is the
// same everywhere.
constexpr std::size_t kWidth = 100, kIndent = 2, kGap = 2;
constexpr std::size_t kWidestName = 33;  // a longer one has a line of its own

std::string heading(const std::string& name) { return "\n" + say("{}:", name) + "\n"; }

std::string lines(const std::string& text, std::size_t at, std::size_t indent) {
  return wrapped(text, at, indent, kWidth) + "\n";
}

// One line of a list: a name, and the text in the column next to it.
struct Entry {
  std::string name, text;
};

// The width of the name column. Very long names do not count; listed() puts the text under them.
std::size_t widest_name(const std::vector<Entry>& entries) {
  std::size_t widest = 0;
  for (const Entry& entry : entries)
    if (columns_of(entry.name) <= kWidestName) widest = std::max(widest, columns_of(entry.name));
  return widest;
}

std::string listed(const std::vector<Entry>& entries, std::size_t widest) {
  const std::size_t column = kIndent + widest + kGap;
  std::string out;
  for (const auto& [name, text] : entries) {
    out += std::string(kIndent, ' ');
    if (columns_of(name) > widest)
      out += name + "\n" + std::string(column, ' ');
    else
      out += in_column(name, widest + kGap);
    out += lines(text, column, column);
  }
  return out;
}

// A positional as the usage line shows it: <FILE>, [FILE], <FILE>...
std::string argument(const OptionRow& row) {
  std::string name = row.names.front();
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  name = "<" + name + ">" + (row.repeats ? "..." : "");
  return row.required ? name : "[" + name + "]";
}

// An option as a list shows it. Short names come before long ones, and an option without a short name is
// indented, so that all long names are below each other.
Entry entry_of(const OptionRow& row) {
  std::string name = row.names.front().starts_with("--") ? "    " : "";
  name += fmt::format("{}", fmt::join(row.names, ", "));
  if (!row.value.empty()) name += " " + value_shown(row);
  std::string text = row.text;
  if (!row.fallback.empty()) text += " " + say("[default: {}]", row.fallback);
  return {name, text};
}

Entry entry_of_argument(const OptionRow& row) {
  std::string text = row.text;
  if (!row.choices.empty())
    text += " " + say("[possible values: {}]", fmt::format("{}", fmt::join(row.choices, ", ")));
  return {argument(row), text};
}

// The options under the headings of their groups, in the order in which the groups begin. The group of
// --help comes last, and --help last in it.
std::string option_groups(const CommandRow& command) {
  std::vector<std::string> groups;
  std::string last;
  for (const OptionRow& row : command.options) {
    if (row.names.back() == "--help") last = row.group;
    if (std::ranges::find(groups, row.group) == groups.end()) groups.push_back(row.group);
  }
  std::erase(groups, last);
  groups.push_back(last);
  std::vector<Entry> all;
  for (const OptionRow& row : command.options) all.push_back(entry_of(row));
  const std::size_t widest = widest_name(all);  // one column for all groups
  std::string out;
  for (const std::string& group : groups) {
    std::vector<Entry> entries;
    for (const OptionRow& row : command.options)
      if (row.group == group && row.names.back() != "--help") entries.push_back(entry_of(row));
    for (const OptionRow& row : command.options)
      if (row.group == group && row.names.back() == "--help") entries.push_back(entry_of(row));
    if (!entries.empty()) out += heading(group) + listed(entries, widest);
  }
  return out;
}

std::string or_list(const std::vector<std::string>& words) {
  if (words.size() == 1) return words.front();
  const std::vector<std::string> before(words.begin(), words.end() - 1);
  return say("{} or {:s}", fmt::format("{}", fmt::join(before, ", ")), words.back());
}

}  // namespace

// Lists every pair of options that exclude each other once, in few sentences: the option with the most
// remaining pairs names all of them, until no pair is left.
std::string combinations(const CommandRow& command) {
  std::set<std::pair<std::string, std::string>> pairs;
  for (const OptionRow& row : command.options)
    for (const std::string& other : row.excludes) pairs.insert(std::minmax(row.names.back(), other));
  std::vector<std::string> text;
  while (!pairs.empty()) {
    std::vector<std::string> most;
    std::string of;
    for (const OptionRow& row : command.options) {
      std::vector<std::string> others;
      for (const OptionRow& other : command.options)
        if (pairs.contains(std::minmax(row.names.back(), other.names.back())))
          others.push_back(other.names.back());
      if (others.size() <= most.size()) continue;
      most = others;
      of = row.names.back();
    }
    // Possible if an option excludes one that is hidden.
    if (most.empty()) break;  // a name that is no option's
    for (const std::string& other : most) pairs.erase(std::minmax(of, other));
    text.push_back(say("{} cannot be used with {:s}.", of, or_list(most)));
  }
  for (const OptionRow& row : command.options)
    for (const std::string& other : row.needs)
      text.push_back(say("{} can only be used with {:s}.", row.names.back(), other));
  return sentences(text);
}

std::string statuses_line(const CommandRow& command) {
  std::vector<std::string> list;
  for (const auto& [status, meaning] : command.statuses)
    list.push_back(fmt::format("{} {}", status, meaning));
  return list.empty() ? "" : say("Exit status: {}", said_list(list));
}

// "[OPTIONS]" is left out for a group of commands whose only option is --help.
std::string usage_of(const CommandRow& command) {
  std::string line = command.path.empty() ? "scankit" : "scankit " + command.path;
  if (command.options.size() > 1 || command.commands.empty()) line += " [OPTIONS]";
  for (const OptionRow& row : command.positionals) line += " " + argument(row);
  if (!command.commands.empty()) line += " <COMMAND>";
  if (!command.trailing.empty()) line += " " + command.trailing;
  return line;
}

std::string help_page(const CommandRow& command) {
  std::string page = lines(command.text, 0, 0) + "\n" + say("Usage: {}", usage_of(command)) + "\n";
  if (!command.positionals.empty()) {
    std::vector<Entry> arguments;
    for (const OptionRow& row : command.positionals) arguments.push_back(entry_of_argument(row));
    page += heading(say("Arguments")) + listed(arguments, widest_name(arguments));
  }
  if (!command.commands.empty()) {
    std::vector<Entry> commands;
    for (const CommandRow& inner : command.commands) commands.push_back({inner.name(), inner.text});
    page += heading(say("Commands")) + listed(commands, widest_name(commands));
  }
  page += option_groups(command);
  if (!command.examples.empty()) {
    page += heading(say("Examples"));
    for (const std::string& example : command.examples) page += "  " + example + "\n";
  }
  if (const std::string text = combinations(command); !text.empty()) page += "\n" + lines(text, 0, 0);
  if (const std::string text = statuses_line(command); !text.empty()) page += "\n" + lines(text, 0, 0);
  return page;
}

namespace {

// Replaces CLI11's formatter, and carries what CLI11 has no place for. All commands of a program share
// one object, because add_subcommand() hands the parent's formatter on.
class HelpStyle : public CLI::FormatterBase {
 public:
  // CLI11 passes the name of the innermost command only, or depending on its version the whole path, so
  // the table's own path is used instead.
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    return help_page(command_table(*app));
  }
  std::map<const CLI::App*, CommandNotes> notes;
};

// nullptr if set_help_style() was not called on the outermost command.
std::shared_ptr<HelpStyle> style_of(const CLI::App& app) {
  return std::dynamic_pointer_cast<HelpStyle>(app.get_formatter());
}

// The command of this name directly below `app`. If there is none, `known` has collected the
// names to suggest.
const CLI::App* command_named(const CLI::App& app, const std::string& name, std::vector<std::string>& known) {
  for (const CLI::App* inner : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (inner->get_group().empty()) continue;  // hidden
    if (inner->get_name() == name) return inner;
    known.push_back(inner->get_name());
  }
  return nullptr;
}

}  // namespace

void set_help_style(CLI::App& app) {
  app.formatter(std::make_shared<HelpStyle>());
  app.option_defaults()->group(say("Options"));
  app.group(say("Commands"));
  app.set_help_flag("-h,--help", say("print help"));
}

// The notes are stored under the address of the command, which CLI11 does not move.
void note(CLI::App& command, CommandNotes notes) {
  if (const auto style = style_of(command)) style->notes[&command] = std::move(notes);
}

const CommandNotes* notes_of(const CLI::App& command) {
  const auto style = style_of(command);
  if (!style) return nullptr;
  const auto found = style->notes.find(&command);
  return found == style->notes.end() ? nullptr : &found->second;
}

void begin_group(CLI::App& command, const std::string& heading) { command.option_defaults()->group(heading); }
std::string group_of_input() { return say("Input"); }
std::string group_of_output() { return say("Output"); }

void add_help_command(CLI::App& app, int& exit_status) {
  const auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("help", say("print the help of a command"));
  command->add_option("command", *words,
                      say("the command, such as doctor or env lock [default: all commands]"));
  note(*command, {.examples = {"scankit help", "scankit help doctor", "scankit help env lock"},
                  .statuses = {},
                  .trailing = {}});
  // The words are resolved when the command runs, not when it is added: by then all commands are known.
  command->callback([words, &app, &exit_status] {
    const CLI::App* named = &app;
    for (const std::string& word : *words) {
      std::vector<std::string> known;
      const CLI::App* inner = command_named(*named, word, known);
      // The parser reports this exception as a usage error, through usage_problem().
      if (inner == nullptr) throw CLI::ValidationError(unexpected_argument(word, known));
      named = inner;
    }
    std::fputs(help_page(command_table(*named)).c_str(), stdout);
    exit_status = kExitClean;
  });
}

// Walks down to the innermost command that the parse has reached. A word that nothing took is another
// mistake, which usage_problem() explains.
std::string help_of_bare_group(const CLI::App& app) {
  const CLI::App* group = &app;
  while (!group->get_subcommands().empty()) group = group->get_subcommands().back();
  const CommandRow table = command_table(*group);
  if (group == &app || table.commands.empty() || !group->remaining(false).empty()) return "";
  return help_page(table);
}

}  // namespace scankit
