// SPDX-License-Identifier: Apache-2.0
// Markers are evaluated in three values (Kleene's logic): true, false, and nothing for what a snapshot
// cannot answer. "unknown and false" is false, so a marker for Windows is decided whatever else it asks.
#include <algorithm>
#include <compare>

#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/knowledge/known_packages.h"
#include "doctor/probes/packages/requirements.h"

namespace scankit::probes {
namespace {

constexpr std::string_view kNameCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
constexpr int kDeepestMarker = 20;  // brackets in a marker

using Answer = std::optional<bool>;

Answer both(const Answer& a, const Answer& b) {
  if (a == Answer(false) || b == Answer(false)) return false;
  return a && b ? Answer(true) : std::nullopt;
}
Answer either(const Answer& a, const Answer& b) {
  if (a == Answer(true) || b == Answer(true)) return true;
  return a && b ? Answer(false) : std::nullopt;
}

// A marker is words, quoted texts, operators and brackets; read once, by recursive descent over the grammar
// of PEP 508: any() is marker_or, all() is marker_and, one() is marker_expr. `rest_` is what is unread.
class Marker {
 public:
  Marker(std::string_view text, const Python& python, const std::string& machine,
         const std::vector<std::string>& extras)
      : rest_(trimmed(text)), python_(python), machine_(machine), extras_(extras) {}

  Answer whole() {
    const Answer answer = any(0);
    return trimmed(rest_).empty() ? answer : std::nullopt;
  }

 private:
  // One side of a comparison. `version`: the side is a version by its meaning, so that the operator compares
  // releases. `extra`: it is the variable `extra`, which has a set of values here.
  struct Value {
    std::string text;
    bool known = true, version = false, extra = false;
  };

  Answer any(int depth) {
    Answer answer = all(depth);
    while (word("or")) answer = either(answer, all(depth));
    return answer;
  }
  Answer all(int depth) {
    Answer answer = one(depth);
    while (word("and")) answer = both(answer, one(depth));
    return answer;
  }
  Answer one(int depth) {
    if (depth > kDeepestMarker) return std::nullopt;
    rest_ = trimmed(rest_);
    if (!rest_.starts_with('(')) return comparison();
    rest_.remove_prefix(1);
    const Answer answer = any(depth + 1);
    rest_ = trimmed(rest_);
    if (!rest_.starts_with(')')) return std::nullopt;
    rest_.remove_prefix(1);
    return answer;
  }

  // Consumes `wanted` only where it is a whole word: "or" is not the beginning of "os_name".
  bool word(std::string_view wanted) {
    rest_ = trimmed(rest_);
    if (!rest_.starts_with(wanted)) return false;
    const auto after = rest_.substr(wanted.size());
    if (!after.empty() && after[0] != ' ' && after[0] != '(' && after[0] != '\'' && after[0] != '"')
      return false;
    rest_ = after;
    return true;
  }

  std::string operation() {
    if (word("not")) return word("in") ? "not in" : "";
    if (word("in")) return "in";
    rest_ = trimmed(rest_);
    const auto end = std::min(rest_.find_first_not_of("<>=!~"), rest_.size());
    std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return text;
  }

  Value value() {
    rest_ = trimmed(rest_);
    if (!rest_.empty() && (rest_[0] == '\'' || rest_[0] == '"')) {
      const auto end = rest_.find(rest_[0], 1);
      if (end == std::string_view::npos) return {.text = {}, .known = false};
      Value quoted{.text = std::string(rest_.substr(1, end - 1))};
      rest_.remove_prefix(end + 1);
      return quoted;
    }
    const auto end = std::min(rest_.find_first_not_of("abcdefghijklmnopqrstuvwxyz_."), rest_.size());
    const std::string name(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return variable(name);
  }

  // The environment markers of PEP 508. The platform is fixed: scankit looks at Linux alone.
  Value variable(const std::string& name) const {
    const auto python = Version::parse(python_.version);
    if (name == "extra") return {.text = {}, .extra = true};
    if (name == "python_version")
      return {.text = python ? python->major_minor() : "", .known = python.has_value(), .version = true};
    if (name == "python_full_version" || name == "implementation_version")
      return {.text = python_.version, .known = python.has_value(), .version = true};
    if (name == "sys_platform" || name == "sys.platform") return {.text = "linux"};
    if (name == "platform_system") return {.text = "Linux"};
    if (name == "os_name" || name == "os.name") return {.text = "posix"};
    if (name == "platform_machine") return {.text = machine_, .known = !machine_.empty()};
    if (name == "implementation_name")
      return {.text = python_.implementation, .known = !python_.implementation.empty()};
    if (name == "platform_python_implementation" || name == "python_implementation")
      return {.text = python_.implementation == "cpython" ? "CPython" : "PyPy",
              .known = python_.implementation == "cpython" || python_.implementation == "pypy"};
    return {.text = {}, .known = false};
  }

  // Text is compared as text, versions as PEP 440 releases. "~=", "===" and the order of texts are left
  // undecided: a wrong answer would report a package as missing.
  Answer comparison() {
    const Value left = value();
    const std::string operation_text = operation();
    const Value right = value();
    if (!left.known || !right.known || operation_text.empty()) return std::nullopt;
    if (left.extra || right.extra) return of_extra(left.extra ? right.text : left.text, operation_text);
    if (operation_text == "in") return right.text.find(left.text) != std::string::npos;
    if (operation_text == "not in") return right.text.find(left.text) == std::string::npos;
    if (left.version || right.version) return of_versions(left.text, operation_text, right.text);
    if (operation_text == "==") return left.text == right.text;
    return operation_text == "!=" ? Answer(left.text != right.text) : std::nullopt;
  }

  Answer of_extra(const std::string& name, const std::string& operation_text) const {
    const bool asked = std::ranges::any_of(
        extras_, [&](const std::string& one) { return normalized_name(one) == normalized_name(name); });
    if (operation_text == "==") return asked;
    return operation_text == "!=" ? Answer(!asked) : std::nullopt;
  }

  // "3.11.*" matches by prefix, whole parts only.
  static Answer of_versions(const std::string& left, const std::string& operation_text, std::string right) {
    if (right.ends_with(".*") && (operation_text == "==" || operation_text == "!=")) {
      const bool below = (left + ".").starts_with(right.substr(0, right.size() - 1));
      return below == (operation_text == "==");
    }
    const auto a = Version::parse(left), b = Version::parse(right);
    if (!a || !b) return std::nullopt;
    if (operation_text == "==") return *a == *b;
    if (operation_text == "!=") return !(*a == *b);
    if (operation_text == "<") return *a < *b;
    if (operation_text == "<=") return *a <= *b;
    if (operation_text == ">") return *a > *b;
    return operation_text == ">=" ? Answer(*a >= *b) : std::nullopt;
  }

  std::string_view rest_;
  const Python& python_;
  const std::string& machine_;
  const std::vector<std::string>& extras_;
};

}  // namespace

std::optional<RequirementLine> parse_requirement(std::string_view line) {
  RequirementLine parsed;
  const auto semicolon = std::min(line.find(';'), line.size());
  std::string_view head = trimmed(line.substr(0, semicolon));
  if (semicolon < line.size()) parsed.marker = std::string(trimmed(line.substr(semicolon + 1)));
  const auto end = std::min(head.find_first_not_of(kNameCharacters), head.size());
  parsed.name = std::string(head.substr(0, end));
  if (parsed.name.empty()) return std::nullopt;
  head = trimmed(head.substr(end));
  if (head.starts_with('[')) {
    const auto close = head.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    std::string_view names = head.substr(1, close - 1);
    while (!names.empty()) {
      const auto comma = std::min(names.find(','), names.size());
      parsed.extras.emplace_back(trimmed(names.substr(0, comma)));
      names.remove_prefix(std::min(comma + 1, names.size()));
    }
    head = trimmed(head.substr(close + 1));
  }
  if (head.starts_with('@')) return parsed;  // from an address: the name alone says what is missing
  parsed.specifier = std::string(head);
  std::erase_if(parsed.specifier, [](char c) { return c == ' ' || c == '(' || c == ')'; });
  return parsed;
}

std::optional<bool> marker_holds(std::string_view marker, const Python& python, const std::string& machine,
                                 const std::vector<std::string>& extras) {
  if (trimmed(marker).empty()) return true;
  return Marker(marker, python, machine, extras).whole();
}

std::vector<RequirementLine> requirement_lines(std::string_view metadata) {
  constexpr std::string_view kField = "Requires-Dist:";
  std::vector<RequirementLine> found;
  for (const std::string_view line : lines_of(metadata)) {
    if (line.empty()) break;  // a folded License field has lines of blanks in it
    if (!line.starts_with(kField)) continue;
    if (auto parsed = parse_requirement(line.substr(kField.size()))) found.push_back(*std::move(parsed));
  }
  return found;
}

ImportName import_name_of(std::string_view distribution) {
  const std::string name = normalized_name(distribution);
  if (const auto known = knowledge::import_name_of_distribution(name)) return {*known, false};
  std::string package(distribution);
  std::ranges::replace(package, '-', '_');
  return {std::move(package), true};
}

}  // namespace scankit::probes
