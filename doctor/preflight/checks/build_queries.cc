// SPDX-License-Identifier: Apache-2.0
#include "doctor/preflight/checks/build_queries.h"

#include <algorithm>
#include <array>
#include <compare>
#include <utility>

#include "doctor/base/message.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/model/snapshot_variables.h"

namespace scankit::preflight {
namespace {

// Whether the files say that import would load the module.
bool is_installed(const Snapshot& snapshot, const std::string& module) {
  const auto copy = checks::selected_copy(snapshot, module);
  return copy && checks::static_obstacle(snapshot, **copy) == Message();
}

// Whether everything that the sources build is installed already. Modules that are not under diagnosis
// say nothing; if none is, the distribution decides.
bool already_installed(const Snapshot& snapshot) {
  const SourceTree& tree = snapshot.sources.value;
  bool looked_at = false;
  for (const std::string& module : tree.modules) {
    if (std::ranges::find(snapshot.modules, module) == snapshot.modules.end()) continue;
    if (!is_installed(snapshot, module)) return false;
    looked_at = true;
  }
  if (looked_at) return true;
  return std::ranges::any_of(snapshot.distributions.value, [&](const Distribution& distribution) {
    return normalized_name(distribution.name) == normalized_name(tree.name);
  });
}

}  // namespace

Finding build_finding(const Snapshot& snapshot, Cause cause, Message summary) {
  const SourceTree& tree = snapshot.sources.value;
  Finding finding{.cause = cause,
                  .subject = path_join(tree.folder, tree.build_file),
                  .module = tree.modules.empty() ? tree.name : tree.modules.front(),
                  .summary = std::move(summary)};
  // Nobody knows before CMake runs which libtorch it will find.
  const bool of_this_torch = builds_no_python_module(snapshot).empty();
  if (!tree.asked && (!of_this_torch || already_installed(snapshot)))
    finding.circumstances.push_back(Circumstance::BuildNotRequested);
  return finding;
}

bool sources_are_here(const Snapshot& snapshot) {
  return snapshot.sources.state != ProbeState::Absent && snapshot.sources.state != ProbeState::NotRun;
}

Message needs_no_cuda(const Snapshot& snapshot) {
  const SourceTree& tree = snapshot.sources.value;
  if (tree.cuda.empty()) return message("{} builds nothing for CUDA", tree.build_file);
  if (!snapshot.torch.value.hip.empty()) return message("torch is a ROCm build");
  if (!tree.opt_in.empty() && !tree.opted_in)
    return message("{} builds for CUDA only where {}=TRUE is set", place(tree.cuda[0]), tree.opt_in);
  // Lines that build for CUDA but may not run are no reason for an error.
  if (in_force(snapshot, tree.cuda).empty())
    return message("whether {} builds for CUDA here: its conditions could not be evaluated",
                   place(tree.cuda[0]));
  return "";
}

Message needs_no_nvcc(const Snapshot& snapshot) {
  if (Message why = needs_no_cuda(snapshot); !why.empty()) return why;
  if (!snapshot.sources.value.has_kernels) return message("no .cu file is compiled");
  return snapshot.build_tools.value.nvcc.empty() ? message("nvcc not found") : "";
}

Message builds_no_python_module(const Snapshot& snapshot) {
  return snapshot.sources.value.build_file == "setup.py" ? ""
                                                         : message("CMake builds no module for this Python");
}

// Evidence for entry `i` of a list of SourceFacts in `sources`.
Evidence source_evidence(const std::string& list, std::size_t i, std::string value) {
  return {"/sources/value/" + list + "/" + std::to_string(i) + "/value", std::move(value)};
}

std::string place(const SourceFact& fact) {
  return fact.line == 0 ? fact.file : fact.file + ":" + std::to_string(fact.line);
}

// The command that builds the sources, with the installer that works for this environment; `variables`
// come before it.
std::string build_command(const Snapshot& snapshot, const std::string& variables) {
  const Python& python = snapshot.python.value;
  const SourceTree& tree = snapshot.sources.value;
  const std::string folder = shell_quoted(tree.folder);
  // Without its switch the build would succeed, and leave the module out.
  const std::string opt_in = tree.opt_in.empty() ? "" : tree.opt_in + "=TRUE ";
  const std::string before = opt_in + (variables.empty() ? "" : variables + " ");
  if (tree.build_file != "setup.py")
    return before + "cmake -S " + folder + " -B " + shell_quoted(tree.folder + "/build");
  const std::string program = shell_quoted(python.requested.empty() ? python.executable : python.requested);
  const Installers here = installers_of(snapshot);
  const bool by_base = !python.has_pip && here.uv.empty() && !here.base_pip.empty();
  const std::string installer =
      python.has_pip ? program + " -m pip install"
      : by_base      ? join({shell_quoted(here.base_pip), "-m pip --python", program, "install"}, " ")
                     : "uv pip install --python " + program;
  const bool by_pip = python.has_pip || by_base;
  const std::string prefix = by_pip ? pip_prefix(here, python) : "";
  return (by_pip ? pip_folder(here) : "") + before + prefix + installer + " --no-build-isolation " + folder;
}

// `otherwise` comes first, because the user is about to build; scankit's own module needs no build.
std::vector<Fix> build_fixes(const Snapshot& snapshot, Fix otherwise) {
  std::vector<Fix> fixes{std::move(otherwise)};
  for (const std::string& module : snapshot.sources.value.modules) {
    auto own = checks::module_fixes(snapshot, module, "");
    if (std::holds_alternative<InstallModule>(own.front())) fixes.push_back(std::move(own.front()));
  }
  return fixes;
}

Message toolkit_advice(const Snapshot& snapshot, const std::string& version) {
  const Python& python = snapshot.python.value;
  if (version.empty())
    return message("install a CUDA toolkit of torch's major version and set CUDA_HOME to its directory");
  if (python.kind == "conda")
    return message("{} install -p {} -c nvidia cuda-toolkit={}, then export CUDA_HOME={}",
                   conda_word(installers_of(snapshot)), shell_quoted(python.prefix), version,
                   shell_quoted(python.prefix));
  return message(
      "install the CUDA toolkit {} with its development headers, then export CUDA_HOME=/usr/local/cuda-{}",
      version, version);
}

// A CUDA_HOME that only has to be set is a better repair than an installation. A toolkit of the same
// major version is good enough, because cpp_extension compares only that.
Fix toolkit_fix(const Snapshot& snapshot, const std::string& version, std::vector<Evidence>& evidence) {
  const auto& toolkits = snapshot.toolkits.value;
  for (std::size_t i = 0; i < toolkits.size() && !version.empty(); ++i) {
    if (major_of(toolkits[i].version) != major_of(version) ||
        toolkits[i].root == snapshot.build_tools.value.cuda_home)
      continue;
    evidence.push_back({"/toolkits/value/" + std::to_string(i) + "/root", toolkits[i].root});
    return SetEnvironment{"CUDA_HOME", toolkits[i].root};
  }
  return Advice{toolkit_advice(snapshot, version)};
}

std::string major_of(const std::string& version) { return version.substr(0, version.find('.')); }

std::string dotted(const std::string& arch) {
  return arch.size() < 2 ? arch : arch.substr(0, arch.size() - 1) + "." + arch.back();
}

// Conditions of a setup.py, answered from the facts of a snapshot by a small evaluator. What is not
// certain stays open (no value), and findings rest only on lines that certainly run. A wrong answer here
// becomes a false alarm.
namespace {

std::string_view strip(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Whether the text is one pair of parentheses around everything, unlike "(a) and (b)".
bool is_one_group(std::string_view text) {
  if (!text.starts_with('(') || !text.ends_with(')')) return false;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) return i + 1 == text.size();
  }
  return false;
}

// The position of the first " and " outside parentheses, or npos.
std::size_t outer_and(std::string_view condition) {
  int depth = 0;
  for (std::size_t i = 0; i < condition.size(); ++i) {
    if (condition[i] == '(') ++depth;
    if (condition[i] == ')') --depth;
    if (depth == 0 && condition.substr(i).starts_with(" and ")) return i;
  }
  return std::string_view::npos;
}

// A comparison with a string literal on the right. The views point into the condition.
struct Comparison {
  std::string_view left, sign, right;  // right: without its quotes
};

// Recognises `left SIGN "text"`, also with one call around the text: Version("11.8"), parse('11.8').
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

// Answers a comparison such as `bare_metal_version >= Version("11.8")`, if the name on the left is one
// that set-up scripts use for the toolkit's release.
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

// scankit runs on Linux only, so these have one answer.
std::optional<bool> system_comparison(const Comparison& asked) {
  std::string_view own;
  if (asked.left == "sys.platform") own = "linux";
  if (asked.left == "os.name") own = "posix";
  // The literal is split because a lint forbids that call.
  if (asked.left ==
      "platform.system"
      "()")
    own = "Linux";  // in two parts for the lint against that call
  if (own.empty() || (asked.sign != "==" && asked.sign != "!=")) return std::nullopt;
  return (own == asked.right) == (asked.sign == "==");
}

// The truth of a name or call without a comparison.
std::optional<bool> word_holds(const Snapshot& snapshot, std::string_view word) {
  const BuildTools& tools = snapshot.build_tools.value;
  const Torch& torch = snapshot.torch.value;
  const auto has = [&](std::string_view part) { return word.find(part) != std::string_view::npos; };
  if (word == "True" || word == "IS_LINUX") return true;
  if (word == "False" || word == "IS_WINDOWS" || word == "IS_MACOS") return false;
  const SourceTree& tree = snapshot.sources.value;
  if (!tree.opt_in_name.empty() && word == tree.opt_in_name) return tree.opted_in;
  if (word == "CUDA_HOME") return !tools.cuda_home.empty();
  if (word == "torch.version.cuda" && snapshot.torch.present()) return !torch.cuda.empty();
  if (word == "torch.version.hip" && snapshot.torch.present()) return !torch.hip.empty();
  // A GPU without a known driver may be usable or not.
  if (word == "torch.cuda.is_available()") {
    if (snapshot.gpus.state == ProbeState::Absent) return false;
    return snapshot.gpus.present() && snapshot.driver.present() ? std::optional(true) : std::nullopt;
  }
  if (word.find_first_of(" =<>()[]\"'.") != std::string_view::npos) return std::nullopt;
  // Variables with these names are switches that leave something out, or are set for AMD's builds. They
  // are off unless somebody sets them.
  if (has("SKIP")) return false;
  if (has("HIP") || has("ROCM")) return !torch.hip.empty();
  return std::nullopt;
}

// Three-valued: true, false or nothing. `depth` bounds the recursion on hostile input. "or" and "else"
// are never decided.
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

// A fact runs if all its enclosing conditions hold, and does not run if one of them certainly fails.
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

}  // namespace scankit::preflight
