// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/host/host.h"

// Files and literals that the Python probes read. What they read is somebody else's bytes: nothing here
// trusts it.

namespace scankit::probes {

// The first bytes of a file, at most `limit`.
Result<std::string> read_head(const Host& host, const std::string& path, std::size_t limit);
bool is_regular_file(const Host& host, const std::string& path);
// The folder in which the examined Python would be started; empty where the examined system is not the
// running one.
std::string working_directory(const Host& host);
// os.path.abspath: lexical, against working_directory().
std::string absolute_path(const Host& host, const std::string& path);

// What stands between quotes at text[at] ('...' or "..."), with \\ and \' undone; nothing where no literal
// starts there. Moves `at` behind the closing quote.
std::optional<std::string> python_string_literal(std::string_view text, std::size_t& at);

// The tokens and logical lines of a Python source, for packages_scan.cc and through it importers.cc. There is
// no grammar: only where statements begin and end, how far they are indented, and their tokens.

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

// Of statements in their order, by their indentation: the one whose block contains each; kTopLevel where none does.
inline constexpr std::size_t kTopLevel = static_cast<std::size_t>(-1);
std::vector<std::size_t> block_heads(const std::vector<std::size_t>& indents);

}  // namespace scankit::probes
