// SPDX-License-Identifier: Apache-2.0
// Three passes over the statements of a file: the first binds names to what they were imported from and
// notes functions, the second finds calls and uses of these names, the third how the file tests them. A name
// with a second meaning anywhere in the file is followed nowhere, because scopes are not modelled.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>

#include "doctor/probes/packages/packages.h"
#include "doctor/probes/python/python_text.h"

namespace scankit::probes {
namespace {
using Tokens = std::span<const PythonToken>;

// A block that is open at the current statement; the stack of them is the nesting by indentation.
struct Block {
  std::size_t indent;
  std::string when;  // "import" or "conditional"; "call" for a function's body
  bool guarded;      // it runs only where a test of versions or names allows it, or its errors are caught
};

bool is_name(const PythonToken& token) { return token.kind == PythonTokenKind::Name; }
bool opens(const PythonToken& token) { return token.is("(") || token.is("[") || token.is("{"); }
bool closes(const PythonToken& token) { return token.is(")") || token.is("]") || token.is("}"); }

// What the keyword that opens a block means for the imports inside it; nothing for other statements. `try`
// runs always, its handlers do not.
std::optional<std::string> block_of(const PythonToken& first) {
  for (const char* word : {"try", "class", "with", "finally"})
    if (first.is(word)) return "import";
  for (const char* word : {"if", "elif", "else", "for", "while", "except", "match", "case"})
    if (first.is(word)) return "conditional";
  if (first.is("def") || first.is("async") || first.is("lambda")) return "call";
  return std::nullopt;
}

// `if TRITON3:`, `if hasattr(tl, "cumsum"):`. A `try` may catch what is missing. Such a block may well name
// what the installed release lacks, so nothing inside it counts as a use.
bool asks_for_a_release(Tokens head) {
  if (head.front().is("try")) return true;
  return std::ranges::any_of(head, [](const PythonToken& token) {
    std::string text(token.text);
    std::ranges::transform(text, text.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return is_name(token) &&
           (text == "hasattr" || text == "getattr" || text.find("version") != std::string::npos ||
            text.find("triton") != std::string::npos);
  });
}

// The tokens behind the colon that ends a block's head: `try: import x`.
Tokens behind_colon(Tokens tokens) {
  int depth = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (opens(tokens[i])) ++depth;
    if (closes(tokens[i])) --depth;
    if (depth == 0 && tokens[i].is(":")) return tokens.subspan(i + 1);
  }
  return {};
}

// The file that is read: its dotted name, for relative imports.
struct ScannedFile {
  const std::string& module;
  bool is_package;  // its name is __init__.py
};

// What the names of a file mean, by all of its statements.
struct Bindings {
  std::map<std::string, std::string> means;  // a bound name -> the dotted name that it was imported as
  std::set<std::string> rebound;             // followed nowhere
  std::set<std::string> assigned;            // rebound by `=`, which also replaces a function of that name
  std::map<std::string, int> definitions;    // a function's name -> how many `def` it has

  // A name that two imports give different meanings is as doubtful as one that is assigned.
  void bind(const std::string& name, const std::string& meaning) {
    const auto [old, fresh] = means.emplace(name, meaning);
    if (!fresh && old->second != meaning) rebound.insert(name);
  }
  void rebind(std::string_view name) { rebound.insert(std::string(name)); }
};

// `a.b if hasattr(a, "b") else c`, `assert`: what follows on the line is not sure to run.
bool asks_in_line(Tokens tokens) {
  return std::ranges::any_of(tokens, [](const PythonToken& token) {
    return token.is("hasattr") || token.is("getattr") || token.is("assert");
  });
}

Tokens head_of(Tokens tokens) { return tokens.first(tokens.size() - behind_colon(tokens).size()); }

// "a.b", "..ops", "." from tokens[at] on; moves `at` behind it.
std::string dotted(Tokens tokens, std::size_t& at) {
  std::string text;
  while (at < tokens.size() &&
         (tokens[at].is(".") || (is_name(tokens[at]) && !tokens[at].is("import") && !tokens[at].is("as"))))
    text += tokens[at++].text;
  return text;
}

// "..ops" in mamba_ssm.modules.mamba_simple is mamba_ssm.ops.
std::string absolute(const ScannedFile& file, const std::string& name) {
  std::size_t dots = 0;
  while (dots < name.size() && name[dots] == '.') ++dots;
  if (dots == 0) return name;
  std::string base = file.module;
  for (std::size_t up = file.is_package ? 1 : 0; up < dots; ++up) {
    const auto dot = base.rfind('.');
    base = dot == std::string::npos ? "" : base.substr(0, dot);
  }
  const std::string rest = name.substr(dots);
  return base.empty() ? "" : rest.empty() ? base : base + "." + rest;
}

// Not the names in their annotations and defaults: `BLOCK: tl.constexpr` binds BLOCK.
void bind_parameters(Tokens tokens, Bindings& names) {
  int depth = 0;
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    if (opens(tokens[i])) ++depth;
    if (closes(tokens[i]) && --depth == 0) return;
    const PythonToken& before = tokens[i - 1];
    const bool starts =
        (depth == 1 && (before.is("(") || before.is(","))) || before.is("*") || before.is("**");
    if ((is_name(tokens[i]) && depth == 1 && starts) || before.is("def")) names.rebind(tokens[i].text);
  }
}

// `a = b = value`, `a, b = ...`, `for a in`, `with x as a`, and parameters. None is what a handler gives to
// a name that it could not import, and no other meaning.
void bind_targets(Tokens tokens, Bindings& names) {
  if (tokens.front().is("def") || tokens.front().is("async")) bind_parameters(tokens, names);
  if (tokens.front().is("for"))
    for (std::size_t i = 1; i < tokens.size() && !tokens[i].is("in"); ++i)
      if (is_name(tokens[i]) && !tokens[i - 1].is(".") && !tokens[i - 1].is("="))
        names.rebind(tokens[i].text);
  for (std::size_t i = 1; i < tokens.size(); ++i)
    if (tokens[i - 1].is("as") || (i + 1 < tokens.size() && tokens[i + 1].is(":=")))
      names.rebind(tokens[i].text);
  int depth = 0;
  std::size_t last = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (opens(tokens[i])) ++depth;
    if (closes(tokens[i])) --depth;
    if (depth == 0 && tokens[i].is("=")) last = i;
  }
  if (last == 0) return;
  const bool none = std::ranges::all_of(tokens.subspan(last + 1), [](const PythonToken& token) {
    return token.is("None") || token.is(",") || token.is("(") || token.is(")");
  });
  for (std::size_t i = 0; i < last && !none; ++i)
    if (is_name(tokens[i]) && (i == 0 || !tokens[i - 1].is(".")) && !tokens[i + 1].is(".") &&
        !tokens[i + 1].is("[")) {
      names.rebind(tokens[i].text);
      names.assigned.insert(std::string(tokens[i].text));
    }
}

// `import a.b` binds "a", which then means a; `import a.b as c` binds "c", which means a.b.
void read_import(Tokens tokens, const std::string& when, PackageScan& scan, Bindings& names) {
  for (std::size_t at = 1; at < tokens.size(); ++at) {
    const unsigned line = tokens[at].line;
    const std::string target = dotted(tokens, at);
    if (target.empty()) continue;
    std::string bound = target.substr(0, target.find('.')), means = bound;
    if (at + 1 < tokens.size() && tokens[at].is("as")) {
      bound = tokens[at + 1].text;
      means = target;
      at += 2;
    }
    scan.imports.push_back({line, target, "", bound, when, "", 0});
    names.bind(bound, means);
  }
}

void read_from(const ScannedFile& file, Tokens tokens, const std::string& when, PackageScan& scan,
               Bindings& names) {
  std::size_t at = 1;
  const unsigned line = tokens.front().line;
  const std::string written = dotted(tokens, at), target = absolute(file, written);
  if (target.empty() || at >= tokens.size() || !tokens[at].is("import")) return;
  for (++at; at < tokens.size(); ++at) {
    if (tokens[at].is("*")) scan.imports.push_back({line, target, "*", "", when, "", 0, written});
    if (!is_name(tokens[at])) continue;
    const std::string name(tokens[at].text);
    std::string bound = name;
    if (at + 2 < tokens.size() && tokens[at + 1].is("as")) {
      bound = tokens[at + 2].text;
      at += 2;
    }
    scan.imports.push_back({line, target, name, bound, when, "", 0, written});
    names.bind(bound, target + "." + name);
  }
}

// Counts parameters at bracket depth 1. A bare `*` and `/` are not parameters; `*rest` and `**rest` make
// the number open. A second def of the name, counted in Bindings::definitions, removes the function in the end.
void read_def(const PythonLine& line, bool decorated, bool top_level, PackageScan& scan, Bindings& names) {
  const auto& tokens = line.tokens;
  if (tokens.size() < 3 || !tokens[0].is("def") || !is_name(tokens[1])) return;
  const std::string name(tokens[1].text);
  ++names.definitions[name];
  if (!top_level || decorated || !tokens[2].is("(")) return;
  ScannedFunction function{line.line, name, 0, 0};
  int depth = 0;
  bool parameter = false, optional = false;
  const auto end_parameter = [&] {
    if (!parameter) return;
    if (function.most >= 0) ++function.most;
    if (!optional) ++function.least;
    parameter = optional = false;
  };
  for (std::size_t i = 2; i < tokens.size(); ++i) {
    if (opens(tokens[i])) ++depth;
    if (closes(tokens[i]) && --depth == 0) break;
    if (depth != 1) continue;
    if (tokens[i].is(",")) {
      end_parameter();
    } else if (tokens[i].is("*") || tokens[i].is("**")) {
      const bool bare = i + 1 < tokens.size() && tokens[i + 1].is(",");
      if (tokens[i - 1].is(",") || tokens[i - 1].is("(")) {
        if (!bare) function.most = -1;
        while (!bare && i + 1 < tokens.size() && !tokens[i + 1].is(",") && !tokens[i + 1].is(")")) ++i;
      }
    } else if (is_name(tokens[i]) && (tokens[i - 1].is(",") || tokens[i - 1].is("("))) {
      parameter = true;
    } else if (tokens[i].is("=")) {
      optional = true;
    }
  }
  end_parameter();
  scan.functions.push_back(function);
}

// Keeps the stack of blocks, records what the statement imports, and binds the names that it assigns. A
// block on one line (`try: import x`) is read like one of two lines. True where the statement is guarded.
bool read_statement(const ScannedFile& file, const PythonLine& line, bool decorated,
                    std::vector<Block>& blocks, PackageScan& scan, Bindings& names) {
  std::optional<Block> before;  // the `if` of an `else`
  for (; !blocks.empty() && blocks.back().indent >= line.indent; blocks.pop_back()) before = blocks.back();
  Tokens tokens = line.tokens;
  bool guarded = (!blocks.empty() && blocks.back().guarded) || asks_in_line(tokens);
  std::string when = blocks.empty() ? "import" : blocks.back().when;
  if (const auto block = block_of(tokens.front())) {
    if (*block == "call") read_def(line, decorated, blocks.empty(), scan, names);
    bind_targets(tokens, names);
    // Inside a condition or a function nothing becomes unconditional again.
    if (when == "import" || *block == "call") when = *block;
    // `else` and its like share the guard of the `if` or `try` at the same indentation.
    const bool goes_on =
        std::ranges::any_of(std::initializer_list<const char*>{"else", "elif", "except", "finally", "case"},
                            [&](const char* word) { return tokens.front().is(word); });
    guarded = guarded || (goes_on && before && before->indent == line.indent && before->guarded);
    if (*block != "call" && !tokens.front().is("class"))
      guarded = guarded || asks_for_a_release(head_of(tokens));
    blocks.push_back({line.indent, when, guarded});
    tokens = behind_colon(tokens);
    if (tokens.empty()) return guarded;
  } else if (tokens.front().is("class") && tokens.size() > 1) {
    names.rebind(tokens[1].text);
  }
  if (tokens.front().is("import"))
    read_import(tokens, when, scan, names);
  else if (tokens.front().is("from"))
    read_from(file, tokens, when, scan, names);
  else
    bind_targets(tokens, names);
  return guarded;
}

// tokens[at] is the "(" of a call. -1 where the number of arguments cannot be told, or where the call is so
// long that calls inside calls would be read over and over.
int count_arguments(Tokens tokens, std::size_t at) {
  constexpr std::size_t kMostTokens = 512;
  int depth = 0, arguments = 0;
  bool something = false;
  for (const std::size_t end = std::min(tokens.size(), at + kMostTokens); at < end; ++at) {
    if (opens(tokens[at]) && ++depth == 1) continue;
    if (closes(tokens[at]) && --depth == 0) return arguments + (something ? 1 : 0);
    const bool first = tokens[at - 1].is(",") || (tokens[at - 1].is("(") && depth == 1);
    if (depth == 1 && ((first && (tokens[at].is("*") || tokens[at].is("**"))) || tokens[at].is("lambda")))
      return -1;
    if (depth == 1 && tokens[at].is(",")) {
      arguments += something ? 1 : 0;
      something = false;
    } else {
      something = true;
    }
  }
  return -1;  // the bracket is not closed
}

// Calls and uses of imported names, spelt through the imports: `tl.math.log1p(x)` after `import
// triton.language as tl` is "triton.language.math.log1p".
void find_names(Tokens tokens, bool guarded, const Bindings& names, PackageScan& scan,
                std::set<std::string>& used) {
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (!is_name(tokens[i]) ||
        (i > 0 && (tokens[i - 1].is(".") || tokens[i - 1].is("def") || tokens[i - 1].is("class"))))
      continue;
    const std::string name(tokens[i].text);
    const auto meaning = names.means.find(name);
    if (meaning == names.means.end() || names.rebound.contains(name)) continue;
    std::string callee = meaning->second;
    std::size_t at = i + 1;
    while (at + 1 < tokens.size() && tokens[at].is(".") && is_name(tokens[at + 1])) {
      callee += "." + std::string(tokens[at + 1].text);
      at += 2;
    }
    if (!guarded && used.insert(callee).second) scan.uses.push_back({tokens[i].line, callee});
    if (at >= tokens.size() || !tokens[at].is("(")) continue;
    scan.calls.push_back({tokens[i].line, callee, count_arguments(tokens, at)});
  }
}

// How a statement that names something imported asks for it: "if", "assert", or "" where it does not ask.
// "if" is the stronger: such a file has a way around what is missing.
std::string question_of(Tokens tokens) {
  const auto has = [&](std::initializer_list<const char*> words) {
    return std::ranges::any_of(tokens, [&](const PythonToken& token) {
      return std::ranges::any_of(words, [&](const char* word) { return token.is(word); });
    });
  };
  if (has({"if", "elif", "while", "and", "or", "bool"})) return "if";
  return has({"assert"}) ? "assert" : "";
}

// How the lines use each bound name. All names in one pass: a file may import 100,000 times.
void judge_uses(const std::vector<PythonLine>& lines, std::vector<ScannedImport>& imports) {
  struct Use {
    std::string tested;
    unsigned called_at = 0;
  };
  std::unordered_map<std::string_view, Use> uses;
  for (const ScannedImport& import : imports)
    if (!import.bound.empty()) uses.emplace(import.bound, Use());
  for (const PythonLine& line : lines) {
    const auto& tokens = line.tokens;
    std::optional<std::string> question;  // that the line asks, where it names something imported
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (!is_name(tokens[i]) || (i > 0 && tokens[i - 1].is("."))) continue;
      const auto use = uses.find(tokens[i].text);
      if (use == uses.end()) continue;
      const bool called = i + 1 < tokens.size() && (tokens[i + 1].is("(") || tokens[i + 1].is("."));
      if (called && use->second.called_at == 0 && !tokens.front().is("def"))
        use->second.called_at = tokens[i].line;
      if (called || tokens.front().is("import") || tokens.front().is("from")) continue;
      if (!question) question = question_of(tokens);
      if (*question == "if" || use->second.tested.empty()) use->second.tested = *question;
    }
  }
  for (ScannedImport& import : imports)
    if (const auto use = uses.find(import.bound); use != uses.end()) {
      import.tested = use->second.tested;
      import.called_at = use->second.called_at;
    }
}

}  // namespace

PackageScan scan_package_file(std::string_view source, const std::string& module, bool is_package) {
  const ScannedFile file{module, is_package};
  const std::vector<PythonLine> lines = python_lines(source);
  PackageScan scan;
  // All statements are read before names are looked for: a name that is rebound at the end of the file is
  // doubtful from its beginning on.
  Bindings names;
  std::vector<Block> blocks;
  std::vector<bool> guarded;  // each line of `lines`
  bool decorated = false;
  for (const PythonLine& line : lines) {
    guarded.push_back(read_statement(file, line, decorated, blocks, scan, names));
    decorated = line.tokens.front().is("@");
  }
  std::set<std::string> used;  // full names that have a use already
  for (std::size_t i = 0; i < lines.size(); ++i) find_names(lines[i].tokens, guarded[i], names, scan, used);
  judge_uses(lines, scan.imports);
  std::erase_if(scan.functions, [&](const ScannedFunction& function) {
    return names.definitions[function.name] != 1 || names.assigned.contains(function.name);
  });
  return scan;
}

}  // namespace scankit::probes
