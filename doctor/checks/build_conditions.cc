// SPDX-License-Identifier: Apache-2.0
// Conditions of a setup.py that the facts of a snapshot answer. What is not certain stays open: a finding
// stands only on lines that certainly run.
#include <algorithm>
#include <array>
#include <compare>

#include "doctor/base/version.h"
#include "doctor/checks/build_view.h"

namespace scankit {
namespace {

std::string_view strip(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool is_one_group(std::string_view text) {
  if (!text.starts_with('(') || !text.ends_with(')')) return false;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) return i + 1 == text.size();
  }
  return false;
}

// The first " and " outside of brackets.
std::size_t outer_and(std::string_view condition) {
  int depth = 0;
  for (std::size_t i = 0; i < condition.size(); ++i) {
    if (condition[i] == '(') ++depth;
    if (condition[i] == ')') --depth;
    if (depth == 0 && condition.substr(i).starts_with(" and ")) return i;
  }
  return std::string_view::npos;
}

struct Comparison {
  std::string_view left, sign, right;  // right: without its quotes
};

// `left SIGN "text"`, or with one call around the text: Version("11.8"), parse('11.8').
std::optional<Comparison> comparison(std::string_view condition) {
  static constexpr std::array<std::string_view, 6> kSigns{">=", "<=", "==", "!=", ">", "<"};
  const auto quote = condition.find_first_of("\"'");
  if (quote == std::string_view::npos) return std::nullopt;
  const auto end = condition.find(condition[quote], quote + 1);
  if (end == std::string_view::npos) return std::nullopt;
  if (condition.substr(end + 1).find_first_not_of(" )") != std::string_view::npos) return std::nullopt;
  for (const std::string_view sign : kSigns)
    if (const auto at = condition.find(sign); at < quote)
      return Comparison{strip(condition.substr(0, at)), sign, condition.substr(quote + 1, end - quote - 1)};
  return std::nullopt;
}

std::optional<bool> compare(std::strong_ordering order, std::string_view sign) {
  if (sign == ">=") return std::is_gteq(order);
  if (sign == "<=") return std::is_lteq(order);
  if (sign == ">") return std::is_gt(order);
  if (sign == "<") return std::is_lt(order);
  return sign == "==" ? std::is_eq(order) : std::is_neq(order);
}

// `bare_metal_version >= Version("11.8")`: a name that speaks of the toolkit.
std::optional<bool> toolkit_comparison(const Snapshot& snapshot, const Comparison& asked) {
  const auto nvcc = Version::parse(snapshot.build_tools.value.nvcc_version);
  const auto other = Version::parse(asked.right);
  const auto& name = asked.left;
  const bool of_toolkit = name.find("bare_metal") != std::string_view::npos ||
                          name.find("nvcc") != std::string_view::npos || name == "cuda_version" ||
                          name == "CUDA_VERSION";
  if (!nvcc || !other || !of_toolkit || name.find_first_of("[(") != std::string_view::npos)
    return std::nullopt;
  return compare(*nvcc <=> *other, asked.sign);
}

// scankit looks at Linux only.
std::optional<bool> system_comparison(const Comparison& asked) {
  std::string_view own;
  if (asked.left == "sys.platform") own = "linux";
  if (asked.left == "os.name") own = "posix";
  if (asked.left ==
      "platform.system"
      "()")
    own = "Linux";  // in two parts for the lint against that call
  if (own.empty() || (asked.sign != "==" && asked.sign != "!=")) return std::nullopt;
  return (own == asked.right) == (asked.sign == "==");
}

std::optional<bool> word_holds(const Snapshot& snapshot, std::string_view word) {
  const BuildTools& tools = snapshot.build_tools.value;
  const Torch& torch = snapshot.torch.value;
  const auto has = [&](std::string_view part) { return word.find(part) != std::string_view::npos; };
  if (word == "True" || word == "IS_LINUX") return true;
  if (word == "False" || word == "IS_WINDOWS" || word == "IS_MACOS") return false;
  if (word == "CUDA_HOME") return !tools.cuda_home.empty();
  if (word == "torch.version.cuda" && snapshot.torch.present()) return !torch.cuda.empty();
  if (word == "torch.version.hip" && snapshot.torch.present()) return !torch.hip.empty();
  if (word == "torch.cuda.is_available()") {
    if (snapshot.gpus.state == ProbeState::Absent) return false;
    return snapshot.gpus.present() && snapshot.driver.present() ? std::optional(true) : std::nullopt;
  }
  if (word.find_first_of(" =<>()[]\"'.") != std::string_view::npos) return std::nullopt;
  // Switches that a user sets to leave something out, and AMD's builds: off unless somebody says otherwise.
  if (has("SKIP")) return false;
  if (has("HIP") || has("ROCM")) return !torch.hip.empty();
  return std::nullopt;
}

std::optional<bool> holds(const Snapshot& snapshot, std::string_view condition, int depth = 0) {
  condition = strip(condition);
  if (depth > 20) return std::nullopt;
  if (is_one_group(condition)) return holds(snapshot, condition.substr(1, condition.size() - 2), depth + 1);
  if (condition.find(" or ") != std::string_view::npos || condition.find(" else ") != std::string_view::npos)
    return std::nullopt;
  if (const auto both = outer_and(condition); both != std::string_view::npos) {
    const auto left = holds(snapshot, condition.substr(0, both), depth + 1),
               right = holds(snapshot, condition.substr(both + 5), depth + 1);
    if (left == false || right == false) return false;
    return left && right ? std::optional(true) : std::nullopt;
  }
  if (condition.starts_with("not ") || condition.starts_with("not(")) {
    const auto inner = holds(snapshot, condition.substr(3), depth + 1);
    return inner ? std::optional(!*inner) : std::nullopt;
  }
  for (const std::string_view ending : {" is not None", " is None"})
    if (condition.ends_with(ending)) {
      const auto there = word_holds(snapshot, strip(condition.substr(0, condition.size() - ending.size())));
      return there ? std::optional(*there == (ending == " is not None")) : std::nullopt;
    }
  const auto asked = comparison(condition);
  if (!asked) return word_holds(snapshot, condition);
  if (asked->left == "__name__") return (asked->right == "__main__") == (asked->sign == "==");
  if (const auto system = system_comparison(*asked)) return system;
  return toolkit_comparison(snapshot, *asked);
}

}  // namespace

std::optional<bool> runs_here(const Snapshot& snapshot, const SourceFact& fact) {
  bool certain = true;
  for (const std::string& guard : fact.guards) {
    const auto answer = holds(snapshot, guard);
    if (answer == false) return false;
    certain = certain && answer;
  }
  return certain ? std::optional(true) : std::nullopt;
}

std::vector<std::size_t> in_force(const Snapshot& snapshot, const std::vector<SourceFact>& facts) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < facts.size(); ++i)
    if (runs_here(snapshot, facts[i]) == true) found.push_back(i);
  return found;
}

}  // namespace scankit
