// SPDX-License-Identifier: Apache-2.0
#include "doctor/cli/parser_words.h"

#include <CLI/CLI.hpp>
#include <optional>
#include <vector>

#include "doctor/base/say.h"

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

}  // namespace

void name_help_parts(CLI::App& app) {
  const auto formatter = app.get_formatter();
  formatter->label("Usage", say("Usage"));
  formatter->label("OPTIONS", say("OPTIONS"));
  formatter->label("Positionals", say("Positionals"));
  formatter->label("SUBCOMMAND", say("SUBCOMMAND"));
  formatter->label("Needs", say("Needs"));
  formatter->label("Excludes", say("Excludes"));
  app.option_defaults()->group(say("Options"));  // commands take both groups over as they are added
  app.group(say("Subcommands"));
  app.set_help_flag("-h,--help", say("Print this help message and exit"));
}

// {:s}: such short sentences are no patterns for retold(), which would find them in foreign texts.
std::string parse_problem(const CLI::ParseError& problem) {
  const std::string what = problem.what();
  if (const auto of = pieces(what, {"The following argument was not expected: ", ""}))
    return say("The following argument was not expected: {}", of->at(0));
  if (const auto of = pieces(what, {"The following arguments were not expected: ", ""}))
    return say("The following arguments were not expected: {}", of->at(0));
  if (const auto of = pieces(what, {"", " is required"})) return say("{:s} is required", of->at(0));
  if (const auto of = pieces(what, {"", " excludes ", ""}))
    return say("{:s} excludes {:s}", of->at(0), of->at(1));
  if (const auto of = pieces(what, {"", ": ", " required ", " missing"}))
    return say("{:s}: {:s} required {:s} missing", of->at(0), of->at(1), of->at(2));
  if (const auto of = pieces(what, {"Could not convert: ", " = ", ""}))
    return say("Could not convert: {} = {}", of->at(0), of->at(1));
  if (const auto of = pieces(what, {"", ": Value ", " not in range ", " to ", ""}))
    return say("{}: Value {} not in range {} to {}", of->at(0), of->at(1), of->at(2), of->at(3));
  if (const auto of = pieces(what, {"", ": ", " not in {", "}"}))
    return say("{:s}: {:s} not in {:s}", of->at(0), of->at(1), "{" + of->at(2) + "}");
  return what;
}

}  // namespace scankit
