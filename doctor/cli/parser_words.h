// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

// What CLI11 says of its own accord, in the user's language. It has no catalogue: its labels can be set, its
// errors are told apart by their class and taken to pieces.
namespace scankit {

void name_help_parts(CLI::App& app);  // before the first option: commands take them over
// An error of a version of CLI11 that words it otherwise stays as it is.
std::string parse_problem(const CLI::ParseError& problem);

}  // namespace scankit
