// SPDX-License-Identifier: Apache-2.0
#include "doctor/command_line/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <string_view>

#include "doctor/base/say.h"
#include "doctor/base/text.h"

namespace scankit {
namespace {

// The values that CLI::IsMember accepts. CLI11 keeps them only in the name of the
// type: "TEXT:{auto,always,never}".
std::vector<std::string> members(const std::string& type) {
  const auto open = type.find('{'), close = type.rfind('}');
  if (open == std::string::npos || close == std::string::npos || close < open) return {};
  return CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

// What the help shows for the value: the choices where the type has no name of its own, else that name. A
// colon separates it from the names of the validators: "SECONDS:FLOAT in [0.1 - 86400]". "" for a flag.
std::string value_name(const CLI::Option& option, const std::vector<std::string>& choices) {
  if (option.get_items_expected_max() == 0) return "";
  const std::string type = option.get_type_name();
  const std::string own = type.substr(0, type.find(':'));
  if (!choices.empty() && (own == "TEXT" || own.empty() || own.front() == '{'))
    return CLI::detail::join(choices, "|");
  return own;
}

// The names in the order in which the options were added. CLI11 keeps these as sets of pointers, whose
// order changes from run to run.
std::vector<std::string> names_in_order(const CLI::App& app, const std::set<CLI::Option*>& some) {
  std::vector<std::string> names;
  for (CLI::Option* option : const_cast<CLI::App&>(app).get_options())
    if (some.contains(option)) names.push_back(option->get_name());
  return names;
}

// An option with long or short names is listed under these, even if it may be given as a
// positional as well.
OptionRow row_of(const CLI::App& app, const CLI::Option& option) {
  OptionRow row;
  row.text = option.get_description();
  // CLI11 makes --help in the constructor of a command, in the group that it calls "Options" in every language.
  row.group = option.get_group() == "Options" ? say("Options") : option.get_group();
  row.fallback = option.get_default_str();
  row.choices = members(option.get_type_name());
  row.value = value_name(option, row.choices);
  row.repeats = option.get_items_expected_max() > 1;
  row.required = option.get_required();
  row.value_optional = option.get_items_expected_min() == 0 && !row.value.empty();
  row.excludes = names_in_order(app, option.get_excludes());
  row.needs = names_in_order(app, option.get_needs());
  if (option.get_positional()) row.names = {option.get_name(true)};
  if (!option.nonpositional()) return row;
  row.names.clear();
  for (const std::string& name : option.get_snames()) row.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) row.names.push_back("--" + name);
  return row;
}

// `path` is that of the command itself: "ci run". Recursive; options, positionals and commands without a
// group are hidden, which is CLI11's convention.
CommandRow row_of(const CLI::App& app, const std::string& path) {
  CommandRow row;
  row.path = path;
  row.text = app.get_description();
  if (const CommandNotes* notes = notes_of(app)) {
    row.examples = notes->examples;
    row.statuses = notes->statuses;
    row.trailing = notes->trailing;
  }
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    (option->nonpositional() ? row.options : row.positionals).push_back(row_of(app, *option));
  }
  // The filter that accepts everything returns the commands in the order in which they were added;
  // without a filter CLI11 returns only those that the last parse has used.
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name().empty() || command->get_group().empty()) continue;  // hidden
    row.commands.push_back(
        row_of(*command, path.empty() ? command->get_name() : path + " " + command->get_name()));
  }
  return row;
}

std::string path_of(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  if (parent == nullptr) return "";
  const std::string before = path_of(*parent);
  return before.empty() ? app.get_name() : before + " " + app.get_name();
}

void collect(const CommandRow& row, std::vector<const CommandRow*>& all) {
  all.push_back(&row);
  for (const CommandRow& command : row.commands) collect(command, all);
}

}  // namespace

CommandRow command_table(const CLI::App& app) { return row_of(app, path_of(app)); }

std::vector<const CommandRow*> all_commands(const CommandRow& table) {
  std::vector<const CommandRow*> all;
  collect(table, all);
  return all;
}

bool takes_path(const OptionRow& option) {
  constexpr std::string_view kPaths[] = {"FILE", "DIR", "PATH", "SNAPSHOT", "SPEC"};
  return option.choices.empty() && std::ranges::any_of(kPaths, [&](std::string_view word) {
           return option.value.find(word) != std::string::npos;
         });
}

std::string value_shown(const OptionRow& option) {
  if (option.value.empty()) return "";
  const std::string shown = "<" + option.value + ">";
  return option.value_optional ? "[" + shown + "]" : shown;
}

namespace {

// Takes a message of CLI11 to pieces: returns what is between the literals, in order. "a excludes b" by
// {"", " excludes ", ""} gives a, b. Nothing if the text does not have this form. The shortest match wins
// for each piece, from the left.
std::optional<std::vector<std::string>> pieces(const std::string& text,
                                               const std::vector<std::string>& literals) {
  std::vector<std::string> found;
  if (!text.starts_with(literals.front()) || !text.ends_with(literals.back())) return std::nullopt;
  std::size_t at = literals.front().size();
  const std::size_t end = text.size() - literals.back().size();
  for (std::size_t i = 1; i + 1 < literals.size(); ++i) {
    const auto next = text.find(literals[i], at);
    if (next == std::string::npos || next + literals[i].size() > end) return std::nullopt;
    found.push_back(text.substr(at, next - at));
    at = next + literals[i].size();
  }
  if (at > end) return std::nullopt;
  found.push_back(text.substr(at, end - at));
  return found;
}

// The innermost command that the words before the mistake have led to.
const CLI::App& innermost(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : innermost(*parsed.back());
}

// The first word that no command on the way accepted, and the command that did not accept it.
struct Stray {
  const CLI::App* command;
  std::string word;
};
std::optional<Stray> first_stray(const CLI::App& app) {
  for (const std::string& word : app.remaining(false))
    if (word != "--") return Stray{&app, word};
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? std::nullopt : first_stray(*parsed.back());
}

// What could have been meant in place of a wrong word: long options or commands. Short options are left
// out, because every letter is near every other one.
std::vector<std::string> known_words(const CommandRow& command, bool options) {
  std::vector<std::string> known;
  if (options) {
    for (const OptionRow& option : command.options)
      for (const std::string& name : option.names)
        if (name.starts_with("--")) known.push_back(name);
    return known;
  }
  for (const CommandRow& inner : command.commands) known.push_back(inner.name());
  return known;
}

// "<FILE>" for "--log", as the help shows it; "" for an unknown option or a flag.
std::string value_of(const CommandRow& command, const std::string& option) {
  for (const OptionRow& row : command.options)
    if (std::ranges::find(row.names, option) != row.names.end()) return value_shown(row);
  return "";
}

bool is_argument(const CommandRow& command, const std::string& name) {
  return std::ranges::any_of(command.positionals,
                             [&](const OptionRow& row) { return row.names.front() == name; });
}

// Positionals are in lower case in the table and in capitals in everything that users read.
std::string upper(std::string name) {
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return name;
}

std::string missing(const CommandRow& command, const std::string& name) {
  if (is_argument(command, name)) return say("missing argument {:s}", "<" + upper(name) + ">");
  if (name.starts_with("-")) return say("missing option {:s}", name);
  return say("missing argument {:s}", name);
}

std::string shown_name(const CommandRow& command, const std::string& name) {
  return is_argument(command, name) ? "<" + upper(name) + ">" : name;
}

// `choices` is CLI11's list, "a,b,c".
std::string not_a_choice(const std::string& name, const std::string& value, const std::string& choices) {
  const auto known = CLI::detail::split(choices, ',');
  const std::string listed = CLI::detail::join(known, ", ");
  if (const std::string near = nearest_word(value, known); !near.empty())
    return say("invalid value '{}' for {}; did you mean '{}'? (choose from {})", value, name, near, listed);
  return say("invalid value '{}' for {} (choose from {})", value, name, listed);
}

// Shortens a number that CLI11 prints with six decimals: "0.100000" becomes "0.1".
std::string number(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// Translates a message of CLI11. Each branch is one message of CLI11 with its literals; a message that an
// unknown version of CLI11 words differently is returned unchanged.
std::string in_plain_words(const CommandRow& command, const CLI::ParseError& problem) {
  const std::string what = problem.what(), kind = problem.get_name();
  const auto name = [&](const std::string& text) { return shown_name(command, text); };
  if (const auto of = pieces(what, {"", " is required"}); of && kind == "RequiredError")
    return missing(command, of->at(0));
  if (const auto of = pieces(what, {"", " excludes ", ""}); of && kind == "ExcludesError")
    return say("{:s} and {:s} cannot be used together", name(of->at(0)), name(of->at(1)));
  if (const auto of = pieces(what, {"", " requires ", ""}); of && kind == "RequiresError")
    return say("{:s} can only be used with {:s}", name(of->at(0)), name(of->at(1)));
  if (const auto of = pieces(what, {"", ": ", " required ", " missing"}))
    return say("missing value for {:s} {:s}", of->at(0), value_of(command, of->at(0)));
  if (const auto of = pieces(what, {"", ": At Most 1 required but received ", ""}))
    return say("{:s} was given {:s} times and is accepted once", name(of->at(0)), of->at(1));
  if (const auto of = pieces(what, {"", ": At least ", " required but received ", ""}))
    return say("missing value for {:s} {:s}", of->at(0), value_of(command, of->at(0)));
  if (const auto of = pieces(what, {"Could not convert: ", " = ", ""}))
    return say("invalid value '{}' for {} {}", of->at(1), name(of->at(0)), value_of(command, of->at(0)));
  auto range = pieces(what, {"", ": Value ", " not in range [", " - ", "]"});  // CLI11 2.4 and newer
  if (!range) range = pieces(what, {"", ": Value ", " not in range ", " to ", ""});
  if (range)
    return say("invalid value '{}' for {}: it must be between {} and {}", range->at(1), name(range->at(0)),
               number(range->at(2)), number(range->at(3)));
  if (const auto of = pieces(what, {"", ": ", " not in {", "}"}))
    return not_a_choice(name(of->at(0)), of->at(1), of->at(2));
  if (const auto of = pieces(what, {"", " was given a disallowed flag override"}))
    return say("{:s} takes no value", of->at(0));
  return what;
}

}  // namespace

std::string unexpected_argument(const std::string& word, const std::vector<std::string>& known) {
  // The two dashes that all options share are not compared, or "--bogus" would be near "--out".
  const std::string dashes = word.starts_with("--") ? "--" : "";
  std::vector<std::string> names;
  for (const std::string& name : known)
    if (name.starts_with(dashes)) names.push_back(name.substr(dashes.size()));
  const std::string given = word.substr(0, word.find('='));
  const std::string near = nearest_word(given.substr(dashes.size()), names);
  return near.empty() ? say("unexpected argument '{}'", word)
                      : say("unexpected argument '{}'; did you mean '{}'?", word, dashes + near);
}

std::string usage_problem(const CLI::App& app, const CLI::ParseError& problem) {
  // A word that no command accepts is reported first, even if something else is missing: the word may be
  // a misspelling of just that.
  const auto stray = first_stray(app);
  const CommandRow command = command_table(stray ? *stray->command : innermost(app));
  const std::string what =
      stray ? unexpected_argument(stray->word, known_words(command, stray->word.starts_with("-")))
            : in_plain_words(command, problem);
  return say("{} (see: {} --help)", what, command.path.empty() ? "scankit" : "scankit " + command.path);
}

}  // namespace scankit
