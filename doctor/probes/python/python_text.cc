// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/python/python_text.h"

#include <algorithm>

#include "doctor/base/files.h"

namespace scankit::probes {

Result<std::string> read_head(const Host& host, const std::string& path, std::size_t limit) {
  SCANKIT_TRY(const auto source, host.open(path));
  std::string bytes(static_cast<std::size_t>(std::min<std::uint64_t>(limit, source->size())), '\0');
  SCANKIT_CHECK(source->read(0, bytes.data(), bytes.size()));
  return bytes;
}

bool is_regular_file(const Host& host, const std::string& path) {
  const auto info = host.stat(path);
  return info && info->kind == FileKind::Regular;
}

std::string working_directory(const Host& host) { return host.is_live() ? current_directory() : ""; }

std::string absolute_path(const Host& host, const std::string& path) {
  if (path.starts_with('/')) return path_normalize(path);
  const std::string directory = working_directory(host);
  return path_normalize(path_join(directory.empty() ? "/" : directory, path));
}

// Not a full reader of escapes: the backslash is dropped and the next character kept, so that "\n" becomes
// "n". A triple-quoted literal comes out empty, and one with a prefix is not recognised.
std::optional<std::string> python_string_literal(std::string_view text, std::size_t& at) {
  if (at >= text.size() || (text[at] != '\'' && text[at] != '"')) return std::nullopt;
  const char quote = text[at];
  std::string value;
  for (std::size_t i = at + 1; i < text.size() && text[i] != '\n'; ++i) {
    if (text[i] == quote) {
      at = i + 1;
      return value;
    }
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    value += text[i];
  }
  return std::nullopt;
}

// Follows the lexical rules of "The Python Language Reference", chapter 2, as far as statements and names
// depend on them. Known difference: an f-string of Python 3.12 that uses its own quote inside braces (PEP
// 701) is cut at that quote.

namespace {

// Every byte of a multi-byte UTF-8 sequence counts as a letter, so that such identifiers stay whole.
bool name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool digit(char c) { return c >= '0' && c <= '9'; }

class Tokenizer {
 public:
  explicit Tokenizer(std::string_view source) : source_(source) {}

  std::vector<PythonLine> run() {
    while (at_ < source_.size()) step();
    end_statement();
    return std::move(lines_);
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }

  // Consumes white space, a comment, a line break or one token. A line break ends the statement only outside
  // of brackets; inside them, and after a backslash, the statement and its indentation go on.
  void step() {
    const char c = peek();
    if (c == '\n') {
      ++line_;
      ++at_;
      if (depth_ == 0) {
        end_statement();
        fresh_ = true;
        indent_ = 0;
      }
    } else if (c == ' ' || c == '\t' || c == '\f' || c == '\r') {
      if (fresh_ && c != '\r') indent_ = c == '\t' ? (indent_ / 8 + 1) * 8 : indent_ + 1;
      ++at_;
    } else if (c == '#') {
      while (at_ < source_.size() && source_[at_] != '\n') ++at_;
    } else if (c == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
      at_ += peek(1) == '\n' ? 2 : 3;
      ++line_;
    } else {
      fresh_ = false;
      token(c);
    }
  }

  // Up to three letters directly before a quote can only be a prefix (r, b, u, f and their combinations), so
  // they are not compared with a list. Operators are joined as far as a caller looks for them: `//`, `<<`
  // and `**=` come in two pieces. A lone `=` is an assignment, a keyword argument or the end of `**=`.
  void token(char c) {
    const std::size_t from = at_;
    if (c == '"' || c == '\'') return string(from);
    if (name_start(c)) {
      while (name_start(peek()) || digit(peek())) ++at_;
      const bool prefix = at_ - from <= 3 && (peek() == '"' || peek() == '\'');
      if (prefix) return string(from);
      return push(PythonTokenKind::Name, from, line_);
    }
    if (digit(c) || (c == '.' && digit(peek(1)))) {
      while (name_start(peek()) || digit(peek()) || peek() == '.') ++at_;
      return push(PythonTokenKind::Number, from, line_);
    }
    ++at_;
    if (c == ';' && depth_ == 0) return end_statement();
    if (c == '(' || c == '[' || c == '{') ++depth_;
    if ((c == ')' || c == ']' || c == '}') && depth_ > 0) --depth_;
    const char next = peek();
    const bool pair = (next == '=' && std::string_view("=!<>+-*/%&|^@:").find(c) != std::string_view::npos) ||
                      (c == '*' && next == '*') || (c == '-' && next == '>');
    if (pair) ++at_;
    push(PythonTokenKind::Op, from, line_);
  }

  // A backslash protects the next character also in a raw string, where it stays part of the text but still
  // keeps a quote from ending the literal. `from` is where the prefix starts.
  void string(std::size_t from) {
    const unsigned first = line_;
    const char quote = peek();
    const bool triple = peek(1) == quote && peek(2) == quote;
    at_ += triple ? 3 : 1;
    for (; at_ < source_.size(); ++at_) {
      const char c = source_[at_];
      if (c == '\\' && at_ + 1 < source_.size()) {
        if (source_[++at_] == '\n') ++line_;
        continue;
      }
      if (c == '\n') {
        if (!triple) break;  // not closed: it ends here, and the newline is read as one
        ++line_;
      }
      if (c != quote || (triple && (peek(1) != quote || peek(2) != quote))) continue;
      at_ += triple ? 3 : 1;
      break;
    }
    push(PythonTokenKind::String, from, first);
  }

  void push(PythonTokenKind kind, std::size_t from, unsigned line) {
    if (!open_) {
      lines_.push_back({indent_, line, {}});
      open_ = true;
    }
    lines_.back().tokens.push_back({kind, source_.substr(from, at_ - from), line});
  }
  void end_statement() { open_ = false; }

  std::string_view source_;
  std::size_t at_ = 0, indent_ = 0;
  unsigned line_ = 1;
  // Open brackets. A stray closing one does not make it negative.
  int depth_ = 0;
  // fresh_: no token of this line yet, so that blanks are indentation. open_: the last PythonLine takes
  // further tokens.
  bool fresh_ = true, open_ = false;
  std::vector<PythonLine> lines_;
};

}  // namespace

std::vector<PythonLine> python_lines(std::string_view source) {
  if (source.starts_with("\xef\xbb\xbf")) source.remove_prefix(3);
  return Tokenizer(source).run();
}

std::vector<std::size_t> block_heads(const std::vector<std::size_t>& indents) {
  std::vector<std::size_t> heads(indents.size(), kTopLevel), open;
  for (std::size_t i = 0; i < indents.size(); ++i) {
    while (!open.empty() && indents[open.back()] >= indents[i]) open.pop_back();
    if (!open.empty()) heads[i] = open.back();
    open.push_back(i);
  }
  return heads;
}

}  // namespace scankit::probes
