// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>

#include "doctor/base/text.h"
#include "doctor/preflight/probes/sources.h"

namespace scankit::preflight {
namespace {

// Walks a file once. Literals keep their value; the code keeps the lines of the file and one quote at each
// end of a literal.
class PythonTextReader {
 public:
  explicit PythonTextReader(std::string_view text) : text_(text) { parsed_.code.emplace_back(); }

  PythonText read() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        newline();
      } else if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == '\'' || c == '"') {
        literal();
      } else {
        put(c);
        ++at_;
      }
    }
    number_statements();
    return std::move(parsed_);
  }

 private:
  // A statement goes on while a bracket is open. Blank lines belong to the statement before them.
  void number_statements() {
    int depth = 0;
    unsigned start = 1, line = 0;
    for (const std::string& code : parsed_.code) {
      ++line;
      if (depth == 0 && !trimmed(code).empty()) start = line;
      parsed_.statement.push_back(start);
      for (const char c : code) {
        if (c == '(' || c == '[' || c == '{') ++depth;
        if ((c == ')' || c == ']' || c == '}') && depth > 0) --depth;
      }
    }
  }

  void put(char c) { parsed_.code.back() += c; }
  void newline() {
    parsed_.code.emplace_back();
    ++at_;
  }

  // The prefix letters of the literal that starts here: r, b, u, f in any case and order.
  std::string prefix() const {
    std::string letters;
    for (std::size_t i = at_; i > 0 && letters.size() < 3; --i) {
      const char c = static_cast<char>(std::tolower(static_cast<unsigned char>(text_[i - 1])));
      if (c != 'r' && c != 'b' && c != 'u' && c != 'f') {
        if (is_identifier_char(text_[i - 1])) letters.clear();
        break;
      }
      letters += c;
    }
    return letters;
  }

  // Called at the opening quote; the prefix has been written to the code by then. A literal over several
  // lines leaves as many lines in the code, so that line numbers stay those of the file.
  void literal() {
    const char quote = text_[at_];
    const std::string letters = prefix();
    const bool raw = letters.find('r') != std::string::npos;
    const bool triple = text_.substr(at_).starts_with(std::string(3, quote));
    PythonLiteral found{.value = "",
                        .line = static_cast<unsigned>(parsed_.code.size()),
                        .column = parsed_.code.back().size(),
                        .formatted = letters.find('f') != std::string::npos};
    // A literal that is a statement of its own is a docstring.
    const bool statement = trimmed(parsed_.code.back()).empty();
    put(quote);
    at_ += triple ? 3 : 1;
    while (at_ < text_.size()) {
      if (triple ? text_.substr(at_).starts_with(std::string(3, quote)) : text_[at_] == quote) break;
      if (text_[at_] == '\n') {
        if (!triple) break;  // unterminated
        found.value += '\n';
        newline();
        continue;
      }
      if (text_[at_] == '\\' && !raw && at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
      found.value += text_[at_++];
    }
    if (at_ < text_.size() && text_[at_] == quote) at_ += triple ? 3 : 1;
    put(quote);
    const std::size_t next = std::min(text_.find_first_not_of(" \t", at_), text_.size());
    const std::string_view rest = text_.substr(next);
    if (rest.starts_with('%') || rest.starts_with(".format")) found.formatted = true;
    if (!(statement && triple)) parsed_.literals.push_back(std::move(found));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  PythonText parsed_;
};

std::size_t indent_of(std::string_view line) { return std::min(line.find_first_not_of(" \t"), line.size()); }

bool is_if(std::string_view text) { return text.starts_with("if ") || text.starts_with("if("); }

std::string condition_of(std::string_view line) {
  std::string_view text = trimmed(line);
  text.remove_prefix(text.starts_with("elif") ? 4 : 2);
  const auto colon = text.rfind(':');
  return std::string(trimmed(text.substr(0, colon)));
}

// `[a] if b else [c]`, `if b: a` on one line, a comprehension's filter.
bool decides_itself(const std::string& statement) {
  return find_word(statement, "if") != std::string::npos ||
         find_word(statement, "elif") != std::string::npos ||
         find_word(statement, "while") != std::string::npos;
}

// The condition that a line adds as the head of a block; "" where it adds none (`with`, `for`) and for
// `else`, whose condition comes from the `if` above it. `text` is the code, `line` has its literals.
std::string guard_of(std::string_view text, std::string_view line) {
  if (is_if(text) || text.starts_with("elif")) return condition_of(line);
  for (const char* word : {"try", "except", "class", "while", "match", "case"})
    if (find_word(text, word) == 0) return word;
  if (find_word(text, "def") != 0) return "";
  const std::string_view rest = trimmed(text.substr(3));
  return "def " + std::string(trimmed(rest.substr(0, rest.find('('))));
}

}  // namespace

std::size_t find_word(std::string_view text, std::string_view word, std::size_t from) {
  for (auto at = text.find(word, from); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const bool left = at == 0 || !is_identifier_char(text[at - 1]);
    const auto end = at + word.size();
    if (left && (end >= text.size() || !is_identifier_char(text[end]))) return at;
  }
  return std::string_view::npos;
}

PythonText read_python_text(std::string_view text) { return PythonTextReader(text).read(); }

std::string statement_code(const PythonText& parsed, unsigned line) {
  std::string code;
  const unsigned start = parsed.statement[line - 1];
  for (unsigned at = start; at <= parsed.code.size() && parsed.statement[at - 1] == start; ++at) {
    if (at > start) code += '\n';
    code += parsed.code[at - 1];
  }
  return code;
}

std::vector<std::string> conditions_around(const PythonText& parsed,
                                           const std::vector<std::string_view>& lines, unsigned line) {
  std::vector<std::string> found;
  if (line == 0 || line > parsed.code.size()) return found;
  if (decides_itself(statement_code(parsed, line))) found.emplace_back("inline");
  std::size_t at = parsed.statement[line - 1] - 1;
  std::size_t indent = indent_of(parsed.code[at]);
  // Upwards from the statement: a line that is less indented is the head of a block around it. After an else
  // or elif the search goes on at the same indentation, because each if and elif above it has to be false.
  bool in_else = false;  // looking for the `if` whose `else` or `elif` was met
  while ((indent > 0 || in_else) && at-- > 0) {
    const std::string_view text = trimmed(parsed.code[at]);
    if (text.empty() || parsed.statement[at] != at + 1 || at >= lines.size()) continue;
    const std::size_t here = indent_of(parsed.code[at]);
    const bool is_elif = text.starts_with("elif");
    if (in_else && here == indent) {
      if (is_if(text) || is_elif) found.push_back("not (" + condition_of(lines[at]) + ")");
      if (!is_elif) in_else = false;
      continue;
    }
    if (here >= indent) continue;
    indent = here;
    if (const std::string guard = guard_of(text, lines[at]); !guard.empty()) found.push_back(guard);
    in_else = is_elif || text.starts_with("else");
  }
  std::ranges::reverse(found);
  return found;
}

}  // namespace scankit::preflight
