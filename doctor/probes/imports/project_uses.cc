// SPDX-License-Identifier: Apache-2.0
// Which use of a guarded import fails where the import did. Conditions are not evaluated: any `if`, `try` or
// the like around a use, or before it in the same function, is taken for a guard.
#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "doctor/probes/imports/importers.h"
#include "doctor/probes/python/python_text.h"

namespace scankit::probes {
namespace {

using Tokens = std::span<const PythonToken>;

bool is_one_of(const PythonToken& token, std::initializer_list<const char*> words) {
  return std::ranges::any_of(words, [&](const char* word) { return token.is(word); });
}
bool mentions(Tokens tokens, std::initializer_list<const char*> words) {
  return std::ranges::any_of(tokens, [&](const PythonToken& token) { return is_one_of(token, words); });
}

// Whether the statement runs only under a condition, or heads a block that does.
bool asks(Tokens tokens) {
  return is_one_of(tokens.front(), {"if", "elif", "else", "while", "try", "except", "finally", "match",
                                    "case", "with", "assert"}) ||
         mentions(tokens, {"if", "and", "or", "assert", "hasattr", "lambda", "suppress"});
}

bool defines_function(Tokens tokens) {
  return tokens.front().is("def") || (tokens.front().is("async") && tokens.size() > 1 && tokens[1].is("def"));
}

// The statements around one of them, by indentation.
class Blocks {
 public:
  explicit Blocks(const std::vector<PythonLine>& lines) : lines_(lines) {
    std::vector<std::size_t> indents;
    for (const PythonLine& line : lines) indents.push_back(line.indent);
    heads_ = block_heads(indents);
  }
  // The innermost statement whose block contains `at`; kNone at the top level.
  std::size_t head(std::size_t at) const { return heads_[at]; }
  bool is_guarded(std::size_t at) const {
    for (; at != kNone; at = heads_[at])
      if (asks(lines_[at].tokens)) return true;
    return false;
  }
  // The innermost `def` around it; kNone for none.
  std::size_t function(std::size_t at) const {
    while (at != kNone && !defines_function(lines_[at].tokens)) at = heads_[at];
    return at;
  }
  static constexpr std::size_t kNone = kTopLevel;

 private:
  const std::vector<PythonLine>& lines_;
  std::vector<std::size_t> heads_;
};

// A file, and one import in it: the name that it binds, and how often that name is bound at all.
class Uses {
 public:
  Uses(const std::vector<PythonLine>& lines, const Blocks& blocks)
      : lines_(lines), blocks_(blocks), testing_(testing_functions(lines)) {}

  unsigned first(std::size_t import_at, const std::string& name) const {
    if (is_bound_again(import_at, name)) return 0;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const std::size_t function = blocks_.function(i);
      // At the top level and in the function of the import, what follows the `try` may be its fallback.
      if (function == Blocks::kNone || function == blocks_.function(import_at)) continue;
      const unsigned line = attribute_of(lines_[i].tokens, name);
      if (line != 0 && !blocks_.is_guarded(i) && !asked_before(function, i)) return line;
    }
    return 0;
  }

 private:
  // `NAME.fwd(...)`: what an absent module has not.
  static unsigned attribute_of(Tokens tokens, const std::string& name) {
    for (std::size_t i = 0; i + 2 < tokens.size(); ++i)
      if (tokens[i].is(name) && tokens[i + 1].is(".") && (i == 0 || !tokens[i - 1].is(".")))
        return tokens[i].line;
    return 0;
  }

  // A parameter, an assignment that is not None, or another import makes something else of the name.
  bool is_bound_again(std::size_t import_at, const std::string& name) const {
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const Tokens tokens = lines_[i].tokens;
      if (i == import_at) continue;
      const bool import = mentions(tokens, {"import", "global", "nonlocal", "for", "as", "del"});
      for (std::size_t k = 0; k < tokens.size(); ++k) {
        if (!tokens[k].is(name) || (k > 0 && tokens[k - 1].is("."))) continue;
        if (import || tokens.front().is("def") || tokens.front().is("class")) return true;
        const bool assigned = k + 1 < tokens.size() && is_one_of(tokens[k + 1], {"=", ":=", ":", ","});
        if (assigned && !tokens.back().is("None") && !mentions(tokens, {"("})) return true;
      }
    }
    return false;
  }

  // Any condition before the use in its function, or a call of a function that consists of such a test, may be
  // what keeps the use from running. The first such line of each function is remembered: a file may use a module
  // in every line.
  bool asked_before(std::size_t function, std::size_t use) const {
    const auto known = first_asked_.find(function);
    if (known != first_asked_.end()) return known->second < use;
    std::size_t at = function + 1;
    while (at < lines_.size() && lines_[at].indent > lines_[function].indent &&
           !asks_or_ends(lines_[at].tokens))
      ++at;
    first_asked_[function] = at;
    return at < use;
  }

  bool asks_or_ends(Tokens tokens) const {
    if (tokens.front().is("assert") || mentions(tokens, {"raise", "return"})) return true;
    // `_check_module()` on a line of its own.
    return tokens.size() >= 3 && tokens[1].is("(") && testing_.contains(tokens[0].text);
  }

  // Functions that raise or assert something.
  static std::set<std::string_view> testing_functions(const std::vector<PythonLine>& lines) {
    std::set<std::string_view> names;
    std::vector<std::size_t> open;  // the `def`s around a line
    for (std::size_t i = 0; i < lines.size(); ++i) {
      while (!open.empty() && lines[open.back()].indent >= lines[i].indent) open.pop_back();
      const Tokens tokens = lines[i].tokens;
      if (is_one_of(tokens.front(), {"raise", "assert"}))
        for (const std::size_t function : open) names.insert(lines[function].tokens[1].text);
      if (tokens.front().is("def") && tokens.size() > 1) open.push_back(i);
    }
    return names;
  }

  mutable std::map<std::size_t, std::size_t> first_asked_;  // by function: the first line that asks
  const std::vector<PythonLine>& lines_;
  const Blocks& blocks_;
  const std::set<std::string_view> testing_;
};

// What `import a.b as c` or `from a import b` binds; "" for several names at once, which are not followed.
std::string bound_name(Tokens tokens) {
  std::size_t at = 0;
  while (at < tokens.size() && !tokens[at].is("import")) ++at;  // "try: import x" on one line
  if (at + 1 >= tokens.size() || mentions(tokens.subspan(at), {",", "*", "(", ";"})) return "";
  for (std::size_t i = at; i + 1 < tokens.size(); ++i)
    if (tokens[i].is("as")) return std::string(tokens[i + 1].text);
  return std::string(tokens[at + 1].text);
}

}  // namespace

std::map<unsigned, unsigned> unguarded_uses(std::string_view source,
                                            const std::vector<std::string>& modules) {
  constexpr std::size_t kMost =
      60;  // imports of one file that are followed: each is searched for in all of it
  std::map<unsigned, unsigned> found;
  const std::vector<PythonLine> lines = python_lines(source);
  const Blocks blocks(lines);
  const Uses uses(lines, blocks);
  for (const ImportLine& import : scan_imports(source, modules)) {
    if (found.size() >= kMost) break;
    const auto at = std::ranges::find(lines, import.line, &PythonLine::line);
    if (at == lines.end()) continue;
    const std::string name = bound_name(at->tokens);
    // A handler that gives the name another value than None has another way.
    const bool replaced = !import.masked_value.empty() && import.masked_value != "None";
    found[import.line] =
        name.empty() || replaced ? 0 : uses.first(static_cast<std::size_t>(at - lines.begin()), name);
  }
  return found;
}

}  // namespace scankit::probes
