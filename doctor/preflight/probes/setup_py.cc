// SPDX-License-Identifier: Apache-2.0
// What a setup.py says about its build, without running it. Each fact is a literal or a call together with
// the conditions around it. The checks use a fact only where build_queries.cc can show that these conditions
// hold, so that a reader here may collect too much, but must not lose a condition.
#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <utility>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/preflight/probes/sources.h"

namespace scankit::preflight {
namespace {

using Lines = std::vector<std::string_view>;
using Guards = std::vector<std::string>;

std::string digits_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && is_digit(text[end])) ++end;
  return std::string(text.substr(at, end - at));
}

// Looks like the path of one source file. Patterns, format strings and lists do not: which files they mean
// is not known here.
bool is_source_name(const PythonLiteral& literal) {
  static constexpr std::array<std::string_view, 5> kSuffixes{".cpp", ".cc", ".cxx", ".cu", ".c"};
  const std::string& value = literal.value;
  if (literal.formatted || value.find_first_of("*?[{%$ \n\t:,") != std::string::npos) return false;
  return std::ranges::any_of(kSuffixes, [&](std::string_view suffix) {
    return value.ends_with(suffix) && path_basename(value).size() > suffix.size();
  });
}

// A step is about one character that is looked at. guards_of() and calls_around() read back from each
// fact, which a hostile file could make quadratic. torch's own setup.py takes a thousandth of this.
constexpr std::size_t kMostSteps = 30'000'000;

// What reading one setup.py has cost, and the answers that are asked for again and again.
struct Reading {
  std::size_t steps = 0;
  std::map<std::string, Guards> calls;  // function -> the guards of its least conditional call

  // False when the budget is spent. Facts that are read after that have the guard "not read".
  bool afford(std::size_t more) {
    steps += more;
    return steps < kMostSteps;
  }
};

// One setup.py: with and without its strings and comments.
struct SetupText {
  PythonText parsed;
  Lines lines;
  std::size_t size;  // bytes
};

const Guards& guards_of_call(const SetupText& setup, Reading& reading, const std::string& function);

// What stands in a function runs where that is called; the least conditional call counts.
Guards guards_of(const SetupText& setup, Reading& reading, unsigned line) {
  if (!reading.afford(setup.size)) return {"not read"};
  Guards guards;
  for (const std::string& guard : conditions_around(setup.parsed, setup.lines, line)) {
    const auto call =
        guard.starts_with("def ") ? guards_of_call(setup, reading, guard.substr(4)) : Guards{guard};
    guards.insert(guards.end(), call.begin(), call.end());
  }
  return guards;
}
// The guards of the call with the fewest of them; "def NAME" where nothing in the file calls the function.
// A method call does not count: which class it belongs to is not known.
const Guards& guards_of_call(const SetupText& setup, Reading& reading, const std::string& function) {
  // Until it is known, the answer to a function that calls itself.
  const auto [known, first] = reading.calls.emplace(function, Guards{"def " + function});
  if (!first) return known->second;
  bool called = false;
  for (unsigned line = 1;
       line <= setup.parsed.code.size() && reading.afford(setup.parsed.code[line - 1].size()); ++line) {
    const std::string& code = setup.parsed.code[line - 1];
    const auto at = find_word(code, function);
    const bool call = at != std::string::npos && !trimmed(code).starts_with("def ") &&
                      code.find('(', at) == at + function.size() && !(at > 0 && code[at - 1] == '.');
    if (!call) continue;
    Guards guards = guards_of(setup, reading, line);
    if (!called || guards.size() < known->second.size()) known->second = std::move(guards);
    called = true;
  }
  return known->second;
}

SourceFact make_fact(const SetupText& setup, Reading& reading, const std::string& file, unsigned line,
                     std::string value) {
  return {file, line, std::move(value), guards_of(setup, reading, line)};
}

bool in_import(const SetupText& setup, unsigned line) {
  const std::string_view code = trimmed(setup.parsed.code[setup.parsed.statement[line - 1] - 1]);
  return code.starts_with("import ") || code.starts_with("from ");
}

void read_extension(const SetupText& setup, Reading& reading, unsigned line, SourceTree& tree) {
  const std::string& code = setup.parsed.code[line - 1];
  if (in_import(setup, line)) return;
  const auto says = [&](std::string_view word) { return find_word(code, word) != std::string_view::npos; };
  if (says("CUDAExtension"))
    tree.cuda.push_back(make_fact(setup, reading, tree.build_file, line, "CUDAExtension"));
  if (says("urlretrieve") || says("urlopen")) tree.fetches_wheel = true;
  if (code.find("os.rename(") != std::string::npos) tree.renames_wheel = true;
  // Any of these may produce a source file, so a file that is missing may still come into being.
  for (const char* word : {"write", "subprocess", "system", "generate", "cythonize", "copyfile", "copytree"})
    tree.generates = tree.generates || says(word);
}

// The calls that the literal is an argument of, innermost first: "join", "CUDAExtension", "setup".
std::vector<std::string> calls_around(const SetupText& setup, Reading& reading,
                                      const PythonLiteral& literal) {
  std::vector<std::string> calls;
  int depth = 0;
  const unsigned start = setup.parsed.statement[literal.line - 1];
  for (unsigned line = literal.line; line >= start && line > 0; --line) {
    const std::string& code = setup.parsed.code[line - 1];
    if (!reading.afford(code.size() + 1)) break;
    std::size_t end = line == literal.line ? std::min(literal.column, code.size()) : code.size();
    while (end-- > 0) {
      if (code[end] == ')') ++depth;
      if (code[end] != '(' || depth-- > 0) continue;
      depth = 0;
      std::size_t name = end;
      while (name > 0 && is_identifier_char(code[name - 1])) --name;
      calls.push_back(code.substr(name, end - name));
    }
  }
  return calls;
}

bool opens_call(const SetupText& setup, unsigned line) {
  while (--line > 0)
    if (const std::string_view code = trimmed(setup.parsed.code[line - 1]); !code.empty())
      return code.ends_with("Extension(");
  return false;
}

// `name=` of an extension, its first argument, or the name of setup() itself.
void read_name(const SetupText& setup, Reading& reading, const PythonLiteral& literal, SourceTree& tree) {
  const std::string_view code = setup.parsed.code[literal.line - 1];
  std::string_view before = trimmed(code.substr(0, literal.column));
  if (literal.formatted || literal.value.empty()) return;
  const auto calls = calls_around(setup, reading, literal);
  if (calls.empty()) return;
  const bool keyword =
      before.ends_with('=') && trimmed(before.substr(0, before.size() - 1)).ends_with("name");
  const bool first = before.ends_with("Extension(") || (before.empty() && opens_call(setup, literal.line));
  if (calls[0].ends_with("Extension") && (keyword || first)) tree.modules.push_back(literal.value);
  if (calls[0] == "setup" && keyword) tree.name = literal.value;
}

// An argument of an extension, or an item of a list that is called something with "source" or "src".
bool is_compiled(const SetupText& setup, Reading& reading, const PythonLiteral& literal) {
  const auto calls = calls_around(setup, reading, literal);
  static constexpr std::array<std::string_view, 12> kOthers{"open",    "copy",     "copyfile", "move",
                                                            "rename",  "remove",   "exists",   "isfile",
                                                            "replace", "endswith", "exclude",  "print"};
  if (!calls.empty() && std::ranges::find(kOthers, calls[0]) != kOthers.end()) return false;
  if (std::ranges::any_of(calls, [](const std::string& call) { return call.ends_with("Extension"); }))
    return true;
  if (!reading.afford(setup.size)) return false;
  const std::string statement = lowered(statement_code(setup.parsed, literal.line));
  const std::string_view target = std::string_view(statement).substr(0, statement.find_first_of("=("));
  return target.find("source") != std::string_view::npos || target.find("src") != std::string_view::npos;
}

void read_literal(const SetupText& setup, Reading& reading, const PythonLiteral& literal, SourceTree& tree) {
  const std::string& value = literal.value;
  if (value.find("TORCH_CUDA_ARCH_LIST") != std::string::npos) tree.sets_arch_list = true;
  read_name(setup, reading, literal, tree);
  if (value.find('\n') != std::string::npos) return;
  for (const std::string& standard : standards_in(value))
    tree.standards.push_back(make_fact(setup, reading, tree.build_file, literal.line, standard));
  if (value.find("arch") != std::string::npos || value.find("compute_") != std::string::npos ||
      value.find("sm_") != std::string::npos) {
    tree.passes_archs = true;
    for (const std::string& arch : architectures_in(value))
      tree.archs.push_back(make_fact(setup, reading, tree.build_file, literal.line, arch));
  }
  if (is_source_name(literal) && is_compiled(setup, reading, literal))
    tree.sources.push_back(make_fact(setup, reading, tree.build_file, literal.line, value));
}

void read_gpu_question(const SetupText& setup, Reading& reading, unsigned line, SourceTree& tree) {
  // torch.cuda functions that raise where there is no GPU.
  static constexpr std::array kQuestions{"get_device_capability", "get_device_properties", "get_device_name",
                                         "current_device"};
  for (const char* question : kQuestions) {
    if (find_word(setup.parsed.code[line - 1], question) == std::string::npos || in_import(setup, line))
      continue;
    tree.asks_gpu.push_back(make_fact(setup, reading, tree.build_file, line, question));
    return;
  }
}

// `if VERSION < Version("11.6"):` and then a raise.
void read_minimum(const SetupText& setup, Reading& reading, unsigned line, SourceTree& tree) {
  const std::string_view code = trimmed(setup.parsed.code[line - 1]);
  if (!code.starts_with("if ") || line > setup.lines.size()) return;
  const std::string lower = lowered(code);
  const auto less = lower.find("< ");
  if (less == std::string::npos || find_word(lower, "and") != std::string::npos) return;
  const std::string subject = lower.substr(0, less);
  if (subject.find("cuda") == std::string::npos && subject.find("bare_metal") == std::string::npos &&
      subject.find("nvcc") == std::string::npos)
    return;
  unsigned next = line + 1;
  while (next <= setup.parsed.code.size() && trimmed(setup.parsed.code[next - 1]).empty()) ++next;
  if (next > setup.parsed.code.size() || !trimmed(setup.parsed.code[next - 1]).starts_with("raise")) return;
  for (const PythonLiteral& literal : setup.parsed.literals) {
    if (literal.line != line || literal.value.empty() || !is_digit(literal.value.front())) continue;
    SourceFact found = make_fact(setup, reading, tree.build_file, line, literal.value);
    std::erase(found.guards, "inline");  // the comparison itself, which the check makes
    tree.minimum_cuda.push_back(std::move(found));
    return;
  }
}

// `KEEP = os.getenv("PACKAGE_KEEP_CUDA_BUILD", "FALSE") == "TRUE"` and `if KEEP:` around the extension. Only a
// switch that is off by itself is one that people must be told of.
void read_opt_in(const SetupText& setup, SourceTree& tree) {
  for (const PythonLiteral& literal : setup.parsed.literals) {
    const std::string_view code = setup.parsed.code[literal.line - 1];
    const auto equals = code.find('=');
    const bool asks =
        code.find("getenv(") != std::string_view::npos || code.find("environ.get(") != std::string_view::npos;
    if (!asks || equals == std::string_view::npos || equals > literal.column) continue;
    const std::string name(trimmed(code.substr(0, equals)));
    const std::string_view line = setup.lines[literal.line - 1];
    const bool off =
        line.find("FALSE") != std::string_view::npos && line.find("TRUE") != std::string_view::npos;
    const bool variable = !literal.value.empty() && std::ranges::all_of(literal.value, is_identifier_char) &&
                          literal.value != "FALSE" && literal.value != "TRUE";
    const bool around = std::ranges::any_of(tree.cuda, [&](const SourceFact& fact) {
      return std::ranges::find(fact.guards, name) != fact.guards.end();
    });
    if (!off || !variable || !around) continue;
    tree.opt_in = literal.value;
    tree.opt_in_name = name;
    return;
  }
}

// BuildExtension runs ninja unless the file says `use_ninja=False` somewhere.
bool wants_ninja(const SetupText& setup) {
  bool asked = false;
  for (unsigned line = 1; line <= setup.parsed.code.size(); ++line) {
    if (in_import(setup, line)) continue;
    const std::string& code = setup.parsed.code[line - 1];
    const auto says = [&](std::string_view word) { return find_word(code, word) != std::string_view::npos; };
    if (says("use_ninja") && says("False")) return false;
    asked = asked || says("BuildExtension");
  }
  return asked;
}

}  // namespace

// Each number once, whatever its suffix.
std::vector<std::string> architectures_in(std::string_view flags) {
  std::vector<std::string> found;
  for (const std::string_view key : {"compute_", "sm_"})
    for (auto at = flags.find(key); at != std::string_view::npos; at = flags.find(key, at + 1)) {
      if (at > 0 && is_identifier_char(flags[at - 1])) continue;
      const std::string arch = digits_at(flags, at + key.size());
      if (arch.size() >= 2 && std::ranges::find(found, arch) == found.end()) found.push_back(arch);
    }
  return found;
}

std::vector<std::string> standards_in(std::string_view flags) {
  // The names that compilers took before a standard had its year.
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kDrafts{
      {{"0x", "11"}, {"1y", "14"}, {"1z", "17"}, {"2a", "20"}, {"2b", "23"}}};
  std::vector<std::string> found;
  for (auto at = flags.find("-std="); at != std::string_view::npos; at = flags.find("-std=", at + 1)) {
    const std::string_view value = flags.substr(at + 5);
    if (!value.starts_with("c++") && !value.starts_with("gnu++")) continue;
    const std::string_view year = value.substr(value.find("++") + 2);
    std::string standard = digits_at(year, 0);
    for (const auto& [draft, final_name] : kDrafts)
      if (year.starts_with(draft)) standard = final_name;
    if (standard.size() == 2) found.push_back(std::move(standard));
  }
  return found;
}

void read_setup_py(std::string_view text, SourceTree& tree) {
  const SetupText setup{read_python_text(text), lines_of(text), text.size()};
  Reading reading;
  for (unsigned line = 1; line <= setup.parsed.code.size(); ++line) {
    const std::string_view code = setup.parsed.code[line - 1];
    const bool import = code.starts_with("import ") || code.starts_with("from ");
    if (import && find_word(code, "torch") != std::string_view::npos) tree.imports_torch = true;
    read_extension(setup, reading, line, tree);
    read_gpu_question(setup, reading, line, tree);
    read_minimum(setup, reading, line, tree);
  }
  tree.wants_ninja = wants_ninja(setup);
  read_opt_in(setup, tree);
  for (const PythonLiteral& literal : setup.parsed.literals) read_literal(setup, reading, literal, tree);
  if (reading.steps < kMostSteps) return;
  tree.not_read.push_back(message("{}: too long to be read whole", tree.build_file));
  tree.generates = tree.own_helpers = true;
}

std::vector<std::string> imported_names(std::string_view text) {
  std::vector<std::string> names;
  for (const std::string& code : read_python_text(text).code) {
    const std::string_view line = trimmed(code);
    const bool from = line.starts_with("from ");
    if (!from && !line.starts_with("import ")) continue;
    const std::string_view rest = trimmed(line.substr(from ? 5 : 7));
    names.emplace_back(rest.substr(0, rest.find_first_of(" .,;")));
  }
  return names;
}

// Only the list `requires` of [build-system] and the name of [project] (PEP 518, PEP 621). Tables and
// strings that are written in TOML's rarer forms are not found.
void read_pyproject(std::string_view text, SourceTree& tree) {
  tree.has_pyproject = true;
  tree.avoids_isolation = text.find("no-build-isolation") != std::string_view::npos;
  std::string section;
  bool in_requires = false;
  // TOML's comments and strings are near enough to Python's for a list of requirements.
  const PythonText parsed = read_python_text(text);
  std::size_t next = 0;
  for (unsigned line = 1; line <= parsed.code.size(); ++line) {
    const std::string_view code = trimmed(parsed.code[line - 1]);
    if (!in_requires && code.starts_with('[')) section = code;
    if (section == "[build-system]" && code.starts_with("requires") &&
        trimmed(code.substr(8)).starts_with('='))
      in_requires = true;
    for (; next < parsed.literals.size() && parsed.literals[next].line <= line; ++next) {
      const PythonLiteral& literal = parsed.literals[next];
      if (in_requires) tree.build_requires.push_back(literal.value);
      if (section == "[project]" && code.starts_with("name") && tree.name.empty()) tree.name = literal.value;
    }
    if (in_requires && code.ends_with(']')) in_requires = false;
  }
}

}  // namespace scankit::preflight
