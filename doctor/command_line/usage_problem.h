// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

// What is wrong with a command line, in plain words and in the user's language. CLI11 has no catalogue: its
// errors are told apart by their class and taken to pieces.
namespace scankit {

// One line, with what was probably meant and the help that shows what is accepted: "unexpected argument
// '--pyton'; did you mean '--python'? (see: scankit doctor --help)". `app` is the outermost command, after
// the parse that threw.
std::string usage_problem(const CLI::App& app, const CLI::ParseError& problem);

// For a word that is not in `known`: the sentence, with the nearest known word if there is one. A value
// after "=" is not compared.
// "unexpected argument 'docter'; did you mean 'doctor'?"
std::string unexpected_argument(const std::string& word, const std::vector<std::string>& known);

}  // namespace scankit
