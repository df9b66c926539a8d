// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

// The tokens and logical lines of a Python source, for packages_scan.h and through it importers.cc. There is
// no grammar: only where statements begin and end, how far they are indented, and their tokens.
namespace scankit {

// Keywords are names. Comments, newlines and indentation are not tokens.
enum class PythonTokenKind { Name, Number, String, Op };
struct PythonToken {
  PythonTokenKind kind;
  std::string_view text;  // into the source; a string's quotes and prefix are part of it
  unsigned line = 0;
  // Compares names, numbers and operators. A string literal never compares equal, whatever it contains.
  bool is(std::string_view what) const { return kind != PythonTokenKind::String && text == what; }
};

// A statement as Python's own tokenizer cuts it: brackets and backslashes join lines, `;` parts them.
struct PythonLine {
  std::size_t indent = 0;  // in columns, a tab up to the next multiple of 8
  unsigned line = 0;
  std::vector<PythonToken> tokens;  // never empty
};

// Tolerant: a string that is not closed ends with its line (or, triple-quoted, with the file), a stray
// closing bracket is ignored. Never fails; a file that is not Python gives tokens without sense.
std::vector<PythonLine> python_lines(std::string_view source);

}  // namespace scankit
