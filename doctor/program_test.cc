// SPDX-License-Identifier: Apache-2.0
// The help of every command, held to one style; and every example in it and every command line that a document
// prints, given to the real parser.
#include "doctor/program.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>

#include "doctor/command_line/command_line.h"

namespace scankit {
namespace {

// As a shell takes it apart. What follows `>` or `|` is the shell's and not scankit's.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false, any = false;
  for (const char c : line + " ") {
    if (c == '\'' || c == '"') {
      quoted = !quoted;
      any = true;
    } else if ((c == '>' || c == '|') && !quoted && !any) {
      return words;
    } else if (c == ' ' && !quoted) {
      if (any) words.push_back(word);
      word.clear();
      any = false;
    } else {
      word += c;
      any = true;
    }
  }
  return words;
}

// Thrown where the whole line is parsed and the command would run.
struct Accepted {};

struct Program {
  CLI::App app{"", "scankit"};
  int status = 0;
  explicit Program(std::vector<std::string>& words) { add_all_commands(app, status, words); }
};

// What the parser says against a command line; "" where it accepts it.
std::string refusal(const std::string& line) {
  std::vector<std::string> words = words_of(line);
  words.erase(words.begin());  // scankit
  Program program(words);
  program.app.parse_complete_callback([] { throw Accepted(); });
  std::ranges::reverse(words);
  try {
    program.app.parse(words);
  } catch (const CLI::ParseError& problem) {
    return usage_problem(program.app, problem);
  } catch (const Accepted&) {
    return "";
  }
  return "the parser neither accepts nor refuses it";
}

CommandRow whole_table() {
  std::vector<std::string> none;
  return command_table(Program(none).app);
}

// "JSON as text" may begin with a capital; "Print it" may not.
bool begins_in_lower_case(const std::string& text) {
  const auto is_upper = [&](std::size_t i) {
    return i < text.size() && std::isupper(static_cast<unsigned char>(text[i])) != 0;
  };
  return !is_upper(0) || is_upper(1);
}

void expect_style(const std::string& where, const std::string& text) {
  EXPECT_FALSE(text.empty()) << where;
  EXPECT_TRUE(begins_in_lower_case(text)) << where << ": " << text;
  EXPECT_FALSE(text.ends_with(".")) << where << ": " << text;
  EXPECT_EQ(text.find("(default"), std::string::npos) << where << ": " << text;
  const auto at = text.find("[default: ");
  EXPECT_TRUE(at == std::string::npos || text.find(']', at) == text.size() - 1) << where << ": " << text;
}

TEST(Help, HasOneStyle) {
  const CommandRow table = whole_table();
  for (const CommandRow* command : all_commands(table)) {
    const std::string where = "scankit " + command->path;
    if (!command->path.empty()) expect_style(where, command->text);
    for (const OptionRow& option : command->options) {
      expect_style(where + " " + option.names.back(), option.text);
      for (const char* internal : {"TEXT", "INT", "UINT", "FLOAT"})
        EXPECT_NE(option.value, internal) << where << " " << option.names.back();
    }
    for (const OptionRow& argument : command->positionals)
      expect_style(where + " " + argument.names.front(), argument.text);
  }
}

TEST(Help, FitsAHundredColumnsAndShowsNothingOfTheParser) {
  const CommandRow table = whole_table();
  for (const CommandRow* command : all_commands(table)) {
    const std::string page = help_page(*command);
    for (std::size_t at = 0; at < page.size();) {
      const auto end = page.find('\n', at);
      EXPECT_LE(end - at, 100u) << "scankit " << command->path << ": " << page.substr(at, end - at);
      at = end + 1;
    }
    for (const char* noise : {"Excludes:", "Needs:", "TEXT", ":INT", "FLOAT in", "REQUIRED"})
      EXPECT_EQ(page.find(noise), std::string::npos) << "scankit " << command->path << ": " << noise;
  }
}

TEST(Help, EveryCommandHasExamplesAndTheParserAcceptsThem) {
  std::size_t parsed = 0;
  const CommandRow table = whole_table();
  for (const CommandRow* command : all_commands(table)) {
    if (!command->commands.empty() && !command->path.empty()) continue;  // a group lists its commands
    EXPECT_GE(command->examples.size(), 2u) << "scankit " << command->path;
    EXPECT_LE(command->examples.size(), 5u) << "scankit " << command->path;
    for (const std::string& example : command->examples) {
      EXPECT_TRUE(example.starts_with(command->path.empty() ? "scankit" : "scankit " + command->path))
          << example;
      EXPECT_EQ(refusal(example), "") << example;
      ++parsed;
    }
  }
  EXPECT_GE(parsed, 60u);
}

TEST(Help, RefusesWhatIsNoExample) {
  EXPECT_NE(refusal("scankit doctor --pyton x"), "");
  EXPECT_NE(refusal("scankit fleet run --bogus -- doctor"), "");
}

// The command lines of a document: indented as code, with or without the prompt of a transcript.
std::vector<std::string> printed_commands(const std::filesystem::path& document) {
  std::vector<std::string> commands;
  std::ifstream in(document);
  for (std::string line; std::getline(in, line);)
    for (const std::string_view start : {"    ", "    $ "})
      if (line.starts_with(std::string(start) + "scankit ")) commands.push_back(line.substr(start.size()));
  return commands;
}

TEST(Documents, PrintOnlyCommandsThatTheParserAccepts) {
  const std::filesystem::path root = SCANKIT_SOURCE_DIR;
  std::vector<std::filesystem::path> documents = {root / "README.md"};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "ci/docs/pages"))
    if (entry.path().extension() == ".md") documents.push_back(entry.path());
  std::size_t parsed = 0;
  for (const auto& document : documents)
    for (const std::string& command : printed_commands(document)) {
      EXPECT_EQ(refusal(command), "") << document << ": " << command;
      ++parsed;
    }
  EXPECT_GE(parsed, 35u);
}

}  // namespace
}  // namespace scankit
