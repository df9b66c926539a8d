// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

// A setup.py as text: its statements without comments, its string literals, the conditions around them.
// Lines are counted from 1, as messages print them, and vectors of lines from 0: line N is at [N - 1].
// Columns are those of the code, which is shorter than the file by the insides of its literals.
namespace scankit {

struct PythonLiteral {
  std::string value;
  unsigned line = 0;
  std::size_t column = 0;  // of its opening quote in the code line
  bool formatted = false;  // an f-string, or followed by % or .format
};
struct PythonText {
  std::vector<std::string> code;        // line by line, comments and the insides of literals left out
  std::vector<PythonLiteral> literals;  // without docstrings
  std::vector<unsigned> statement;      // of each line: the line (1-based) where its statement starts
};
PythonText read_python_text(std::string_view text);

// The conditions under which a line (1-based) runs, outermost first: "A", "not (A)" in the branch of an else,
// "try", "except", "class", "def NAME" in such blocks, "inline" where its own statement decides. `lines` are
// those of the file as written, because conditions compare with literals.
std::vector<std::string> conditions_around(const PythonText& parsed,
                                           const std::vector<std::string_view>& lines, unsigned line);
// The code of the statement that holds `line` (1-based), its lines joined by '\n'.
std::string statement_code(const PythonText& parsed, unsigned line);

bool is_identifier_char(char c);
// The position of `word` as a whole identifier from `from` on, or npos.
std::size_t find_word(std::string_view text, std::string_view word, std::size_t from = 0);

}  // namespace scankit
