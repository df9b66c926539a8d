// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "doctor/base/text.h"
#include "doctor/probes/imports/importers.h"
#include "doctor/probes/python/python_text.h"

// Three steps: physical lines are joined to statements (statements_of), each is asked whether it
// imports one of the modules (import_of), and for those that do, the blocks around them are looked up
// by their indentation.
namespace scankit::probes {
namespace {

struct Statement {
  unsigned line = 0;
  std::size_t indent = 0;
  std::string text;  // without comments; continuation lines are joined
};

// Walks over strings and brackets of one physical line, so that a line inside a docstring or an open bracket
// is not taken for a statement.
class LineState {
 public:
  bool open() const { return !quote_.empty() || depth_ > 0; }
  bool in_string() const { return !quote_.empty(); }
  // The line without its comment.
  std::string_view feed(std::string_view line) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (!quote_.empty()) {
        if (line[i] == '\\')
          ++i;
        else if (line.substr(i).starts_with(quote_))
          i += std::exchange(quote_, {}).size() - 1;
        continue;
      }
      const char c = line[i];
      if (c == '#') return line.substr(0, i);
      if (c == '(' || c == '[' || c == '{') ++depth_;
      if ((c == ')' || c == ']' || c == '}') && depth_ > 0) --depth_;
      if (c != '\'' && c != '"') continue;
      const std::string triple(3, c);
      quote_ = line.substr(i).starts_with(triple) ? triple : std::string(1, c);
      i += quote_.size() - 1;
    }
    if (quote_.size() == 1) quote_.clear();  // such a string ends with its line
    return line;
  }

 private:
  std::string quote_;
  int depth_ = 0;
};

// Tabs go to the next multiple of eight, as Python's tokenizer counts them.
std::size_t indent_columns(std::string_view line) {
  std::size_t columns = 0;
  for (const char c : line) {
    if (c == ' ')
      ++columns;
    else if (c == '\t')
      columns = (columns / 8 + 1) * 8;
    else
      break;
  }
  return columns;
}

// A line begins a statement unless it is inside brackets or a string, or the line before it ends with a
// backslash. Lines inside a string of several lines are left out. A statement is cut at kLongest characters.
std::vector<Statement> statements_of(std::string_view source) {
  constexpr std::size_t kLongest = 8192;
  std::vector<Statement> statements;
  LineState state;
  unsigned number = 0;
  bool continued = false;
  for (const std::string_view line : lines_of(source)) {
    ++number;
    const bool inside = state.open() || continued, inside_string = state.in_string();
    std::string_view code = state.feed(line);
    continued = !state.open() && code.ends_with('\\');
    if (continued) code.remove_suffix(1);
    if (inside) {
      if (!inside_string && !statements.empty() && statements.back().text.size() + code.size() < kLongest)
        statements.back().text += " " + std::string(trimmed(code));
    } else if (!trimmed(code).empty()) {
      statements.push_back({number, indent_columns(line), std::string(trimmed(code).substr(0, kLongest))});
    }
  }
  return statements;
}

bool starts_with_word(std::string_view text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  if (text.size() == word.size()) return true;
  const char next = text[word.size()];
  return next == ' ' || next == '\t' || next == ':' || next == '(' || next == '*';
}

// Parts may be empty.
std::vector<std::string> trimmed_parts(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; from <= text.size();) {
    const auto end = std::min(text.find(separator, from), text.size());
    parts.emplace_back(trimmed(text.substr(from, end - from)));
    from = end + 1;
  }
  return parts;
}

struct Bound {
  std::string module;              // as asked for
  std::vector<std::string> names;  // what the statement binds
};

// "a.b as c" -> the module and the name that it binds.
std::pair<std::string, std::string> clause(const std::string& text) {
  const auto as = text.find(" as ");
  const std::string module(trimmed(std::string_view(text).substr(0, as)));
  if (as != std::string::npos) return {module, std::string(trimmed(std::string_view(text).substr(as + 4)))};
  return {module, module.substr(0, module.find('.'))};
}

// The one of `modules` that `module` is or is inside of; "" for none.
std::string asked_for(const std::string& module, const std::vector<std::string>& modules) {
  for (const std::string& each : modules)
    if (module == each || module.starts_with(each + ".")) return each;
  return {};
}

std::optional<Bound> from_import(std::string_view rest, const std::vector<std::string>& modules) {
  const auto import = rest.find(" import ");
  if (import == std::string_view::npos) return std::nullopt;
  Bound bound{asked_for(std::string(trimmed(rest.substr(0, import))), modules), {}};
  if (bound.module.empty()) return std::nullopt;
  std::string names(rest.substr(import + 8));
  std::erase_if(names, [](char c) { return c == '(' || c == ')'; });
  for (const std::string& part : trimmed_parts(names, ',')) {
    const auto as = part.find(" as ");
    if (!part.empty())
      bound.names.push_back(as == std::string::npos ? part : std::string(trimmed(part.substr(as + 4))));
  }
  return bound;
}

// name = importlib.import_module("m"), name = __import__('m')
std::optional<Bound> called_import(std::string_view text, const std::vector<std::string>& modules) {
  for (const std::string_view call : {"import_module(", "__import__("}) {
    const auto at = text.find(call);
    if (at == std::string_view::npos) continue;
    std::size_t value = text.find_first_not_of(' ', at + call.size());
    if (value == std::string_view::npos) continue;
    const auto module = python_string_literal(text, value);
    if (!module) continue;
    Bound bound{asked_for(*module, modules), {}};
    if (bound.module.empty()) continue;
    const auto equals = text.substr(0, at).find('=');
    if (equals != std::string_view::npos) bound.names.emplace_back(trimmed(text.substr(0, equals)));
    return bound;
  }
  return std::nullopt;
}

std::optional<Bound> import_of(std::string_view text, const std::vector<std::string>& modules) {
  // `try: import x` on one line: the part behind the colon is the statement.
  if (starts_with_word(text, "try") || starts_with_word(text, "with") || starts_with_word(text, "if"))
    if (const auto colon = text.find(": "); colon != std::string_view::npos)
      text = trimmed(text.substr(colon + 1));
  if (starts_with_word(text, "from")) return from_import(trimmed(text.substr(4)), modules);
  if (!starts_with_word(text, "import")) return called_import(text, modules);
  for (const std::string& part : trimmed_parts(text.substr(6), ',')) {
    const auto [module, name] = clause(part);
    if (auto asked = asked_for(module, modules); !asked.empty()) return Bound{asked, {name}};
  }
  return std::nullopt;
}

// What of a failed import an `except` clause catches, in the clause's own words; "" where it lets it through.
std::string caught_by(std::string_view handler) {
  const auto colon = handler.rfind(':');
  std::string what(trimmed(handler.substr(6, colon == std::string_view::npos ? colon : colon - 6)));
  if (what.empty()) return "everything";
  for (const std::string_view name : {"ImportError", "BaseException", "Exception", "ModuleNotFoundError"})
    if (what.find(name) != std::string::npos) return std::string(name);
  return {};
}

// The value that a handler gives to one of the names: `a = None`, `a, b = None, None`, `a = b = None`.
std::string value_given(std::string_view statement, const std::vector<std::string>& names) {
  const auto equals = statement.rfind('=');
  if (equals == std::string_view::npos || equals == 0) return {};
  const std::vector<std::string> values = trimmed_parts(statement.substr(equals + 1), ',');
  for (const std::string& targets : trimmed_parts(statement.substr(0, equals), '=')) {
    const std::vector<std::string> each = trimmed_parts(targets, ',');
    for (std::size_t i = 0; i < each.size(); ++i)
      if (std::ranges::find(names, each[i]) != names.end())
        return values.size() == each.size() ? values[i] : values[0];
  }
  return {};
}

// Reads the handlers of the `try` at statements[at]. The first clause that catches decides. A handler that
// raises again guards nothing; `else` and `finally` are passed over.
void read_handlers(const std::vector<Statement>& statements, std::size_t at,
                   const std::vector<std::string>& names, ImportLine& line) {
  const std::size_t indent = statements[at].indent;
  bool inside = false, raises = false;
  for (std::size_t i = at + 1; i < statements.size() && statements[i].indent >= indent; ++i) {
    const Statement& statement = statements[i];
    std::string_view body = statement.text;
    if (statement.indent == indent) {
      if (inside || !starts_with_word(body, "except")) {
        if (inside || (!starts_with_word(body, "finally") && !starts_with_word(body, "else"))) break;
        continue;
      }
      line.caught = caught_by(body);
      inside = !line.caught.empty();
      const auto colon = body.find(": ");
      body = colon == std::string_view::npos ? std::string_view() : trimmed(body.substr(colon + 1));
    }
    if (!inside) continue;
    raises = raises || starts_with_word(body, "raise");
    if (line.masked_value.empty()) line.masked_value = value_given(body, names);
  }
  if (raises) line.caught.clear();
}

bool defines_function(const Statement& statement) {
  return starts_with_word(statement.text, "def") || starts_with_word(statement.text, "async");
}

// The innermost `try` whose own body contains the statement. `heads`: block_heads() of the statements.
std::optional<std::size_t> guarding_try(const std::vector<Statement>& statements,
                                        const std::vector<std::size_t>& heads, std::size_t at) {
  for (std::size_t i = heads[at]; i != kTopLevel; i = heads[i]) {
    if (starts_with_word(statements[i].text, "try")) return i;
    // A guard around the definition of a function does not guard its calls.
    if (defines_function(statements[i])) return std::nullopt;
  }
  return std::nullopt;
}

// A class body runs with the import, a function's does not.
bool inside_function(const std::vector<Statement>& statements, const std::vector<std::size_t>& heads,
                     std::size_t at) {
  for (std::size_t i = heads[at]; i != kTopLevel; i = heads[i])
    if (defines_function(statements[i])) return true;
  return false;
}

std::vector<std::size_t> heads_of(const std::vector<Statement>& statements) {
  std::vector<std::size_t> indents;
  for (const Statement& statement : statements) indents.push_back(statement.indent);
  return block_heads(indents);
}

}  // namespace

std::vector<ImportLine> scan_imports(std::string_view source, const std::vector<std::string>& modules) {
  constexpr std::size_t kMost = 1000;  // of one file: the handlers are read for each
  std::vector<ImportLine> found;
  // Most files do not name a module at all, and their statements need not be made.
  const auto named = [&](const std::string& module) { return source.find(module) != std::string_view::npos; };
  if (std::ranges::none_of(modules, named)) return found;
  const std::vector<Statement> statements = statements_of(source);
  const std::vector<std::size_t> heads = heads_of(statements);
  for (std::size_t i = 0; i < statements.size() && found.size() < kMost; ++i) {
    const auto bound = import_of(statements[i].text, modules);
    if (!bound) continue;
    ImportLine line{bound->module, statements[i].line, {}, {}, inside_function(statements, heads, i)};
    std::optional<std::size_t> guard = i;  // `try: import x` on one line
    if (!starts_with_word(statements[i].text, "try")) guard = guarding_try(statements, heads, i);
    // Outwards, until some `try` catches: an inner one may let ImportError through.
    while (guard && line.caught.empty()) {
      line.masked_value.clear();
      read_handlers(statements, *guard, bound->names, line);
      guard = guarding_try(statements, heads, *guard);
    }
    if (line.caught.empty()) line.masked_value.clear();
    found.push_back(std::move(line));
  }
  return found;
}

}  // namespace scankit::probes
