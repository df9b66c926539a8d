// SPDX-License-Identifier: Apache-2.0
#include "doctor/command_line/usage_problem.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>

#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/command_line/command_table.h"

namespace scankit {
namespace {

// What stands around the literals, in order: "a excludes b" by {"", " excludes ", ""} is a, b.
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

// The command that the words before the mistake led to.
const CLI::App& innermost(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : innermost(*parsed.back());
}

// The first word that no command on the way took, and the command that did not take it.
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

// "<FILE>" behind "--log", as the help has it; "" of an option that is not known.
std::string value_of(const CommandRow& command, const std::string& option) {
  for (const OptionRow& row : command.options)
    if (std::ranges::find(row.names, option) != row.names.end()) return value_shown(row);
  return "";
}

bool is_argument(const CommandRow& command, const std::string& name) {
  return std::ranges::any_of(command.positionals,
                             [&](const OptionRow& row) { return row.names.front() == name; });
}

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

std::string not_a_choice(const std::string& name, const std::string& value, const std::string& choices) {
  const auto known = CLI::detail::split(choices, ',');
  const std::string listed = CLI::detail::join(known, ", ");
  if (const std::string near = nearest_word(value, known); !near.empty())
    return say("invalid value '{}' for {}; did you mean '{}'? (choose from {})", value, name, near, listed);
  return say("invalid value '{}' for {} (choose from {})", value, name, listed);
}

// CLI11 writes 0.1 as "0.100000".
std::string number(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// {:s}: such short sentences are no patterns for retold(), which would find them in foreign texts. A wording
// of a version of CLI11 that is not known here stays as it is.
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
  // Two dashes that all options share would let "--bogus" be near "--out".
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
  // A word that nothing takes comes first: what is missing besides may be what it was meant to be.
  const auto stray = first_stray(app);
  const CommandRow command = command_table(stray ? *stray->command : innermost(app));
  const std::string what =
      stray ? unexpected_argument(stray->word, known_words(command, stray->word.starts_with("-")))
            : in_plain_words(command, problem);
  return say("{} (see: {} --help)", what, command.path.empty() ? "scankit" : "scankit " + command.path);
}

}  // namespace scankit
