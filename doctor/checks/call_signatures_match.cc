// SPDX-License-Identifier: Apache-2.0
// A call with the wrong number of arguments is a TypeError at the first forward pass, long after a
// successful import. What a function accepts is known from, best first: the module's own documentation,
// seen at its import; the `def` of a Python sibling; pybind11's texts in the file, which do not say which
// function they describe; and the release.
#include <algorithm>
#include <map>
#include <optional>

#include "doctor/base/message.h"
#include "doctor/base/text.h"
#include "doctor/checks/check.h"
#include "doctor/checks/packages.h"
#include "doctor/checks/repairs.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/knowledge/known_packages.h"

namespace scankit::checks {
namespace {

// For *args: any number.
constexpr int kAny = 1 << 20;

// The numbers of arguments that a function accepts, with the sentence and the evidence for it.
struct Takes {
  int least = 0, most = 0;
  Message words;  // "takes 7"
  std::vector<Evidence> evidence;
  bool accepts(int arguments) const { return arguments >= least && arguments <= most; }
};

Message range(int least, int most) {
  if (most == kAny) return message("at least {}", least);
  return least == most ? Message(std::to_string(least)) : message("{} to {}", least, most);
}

// Counts the parameters in pybind11's documentation of a function: "fwd(arg0: torch.Tensor, arg1:
// Optional[torch.Tensor] = None) -> torch.Tensor" gives 1 and 2. Nothing for overloads, which pybind11
// documents as (*args, **kwargs), and for text in another form.
std::optional<std::pair<int, int>> documented(const std::string& text, const std::string& name) {
  if (!text.starts_with(name + "(") || text.find(") -> ") == std::string::npos) return std::nullopt;
  int depth = 0, most = 0, least = 0;
  bool something = false, optional = false;
  for (std::size_t i = name.size(); i < text.size(); ++i) {
    const char c = text[i];
    // Commas and equal signs inside types and defaults are at a greater depth.
    const bool end = c == ')' && depth == 1;
    if (depth == 1 && (c == ',' || end)) {
      most += something ? 1 : 0;
      least += something && !optional ? 1 : 0;
      something = optional = false;
      if (end) return std::pair{least, most};
      continue;
    }
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (depth == 1 && c == '*') return std::nullopt;
    if (depth == 1 && c == '=') optional = true;
    something = something || (c != ' ' && c != '(');
  }
  return std::nullopt;
}

std::optional<Takes> documented_by(const Snapshot& snapshot, const Observation& seen,
                                   const std::string& function) {
  const auto at = static_cast<std::size_t>(&seen - snapshot.observations.value.data());
  for (std::size_t i = 0; i < seen.signatures.size(); ++i)
    if (const auto counts = documented(seen.signatures[i], function))
      return Takes{counts->first,
                   counts->second,
                   message("the installed module documents {}", range(counts->first, counts->second)),
                   {{"/observations/value/" + std::to_string(at) + "/signatures/" + std::to_string(i),
                     seen.signatures[i]}}};
  return std::nullopt;
}

// From an import of the sibling package in a child.
std::optional<Takes> seen_in_python(const Snapshot& snapshot, const std::string& callee) {
  if (!snapshot.observations.present()) return std::nullopt;
  const auto dot = callee.rfind('.');
  for (const Observation& seen : snapshot.observations.value)
    if (seen.variant == "sibling" && seen.module == callee.substr(0, dot) && seen.outcome == "ok")
      if (auto takes = documented_by(snapshot, seen, callee.substr(dot + 1))) return takes;
  return std::nullopt;
}

// From a `def` in the sources of the installed package. `most` of -1 means *args or **kwargs.
std::optional<Takes> defined_in_python(const Snapshot& snapshot, const std::string& callee) {
  const auto& functions = snapshot.packages.value.functions;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    if (functions[i].name != callee) continue;
    const std::string pointer = "/packages/value/functions/" + std::to_string(i);
    const int most = functions[i].most < 0 ? kAny : functions[i].most;
    return Takes{
        functions[i].least,
        most,
        message("{}:{} defines {}", functions[i].file, functions[i].line, range(functions[i].least, most)),
        {{pointer + "/file", functions[i].file}, {pointer + "/most", std::to_string(functions[i].most)}}};
  }
  return std::nullopt;
}

// nullptr if the file's texts could not be read.
const ModuleTexts* texts_of(const Snapshot& snapshot, const std::string& module) {
  for (const ModuleTexts& texts : snapshot.packages.value.texts)
    if (texts.module == module && texts.read) return &texts;
  return nullptr;
}

// By the installed release and scankit's table, provided the file does not contradict: if no function of
// the file takes the number in the table, the file is not of that release.
std::optional<Takes> of_the_release(const Snapshot& snapshot, const std::string& module,
                                    const std::string& callee) {
  const std::string distribution = knowledge::signature_distribution(callee);
  const auto& installed = snapshot.distributions.value;
  for (std::size_t i = 0; i < installed.size() && !distribution.empty(); ++i) {
    if (normalized_name(installed[i].name) != normalized_name(distribution)) continue;
    const auto known = knowledge::known_signature(callee, installed[i].version);
    const ModuleTexts* texts = texts_of(snapshot, module);
    if (!known || texts == nullptr || texts->open_ended ||
        !std::ranges::binary_search(texts->arguments, known->arguments))
      return std::nullopt;
    const int arguments = static_cast<int>(known->arguments);
    const std::string pointer = "/distributions/value/" + std::to_string(i) + "/version";
    return Takes{arguments,
                 arguments,
                 message("{} {} accepts {}", distribution, installed[i].version, arguments),
                 {{pointer, installed[i].version}}};
  }
  return std::nullopt;
}

// Proof by exclusion: no function of the file takes that many arguments, whatever its name. The result
// accepts nothing.
std::optional<Takes> of_no_function(const Snapshot& snapshot, const std::string& module, int arguments) {
  const auto& all = snapshot.packages.value.texts;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const ModuleTexts& texts = all[i];
    if (texts.module != module || !texts.read || texts.open_ended || texts.arguments.empty()) continue;
    const auto most = static_cast<int>(texts.arguments.back());
    const bool fits = std::ranges::binary_search(texts.arguments, static_cast<unsigned>(arguments)) ||
                      (texts.defaults && arguments < most);
    if (fits) return std::nullopt;
    std::vector<std::string> numbers;
    Takes takes{-1, -1, "", {}};
    for (std::size_t k = 0; k < texts.arguments.size(); ++k) {
      numbers.push_back(std::to_string(texts.arguments[k]));
      takes.evidence.push_back(
          {"/packages/value/texts/" + std::to_string(i) + "/arguments/" + std::to_string(k), numbers.back()});
    }
    takes.words = message("the functions of {} accept {} and no other number", texts.path, join(numbers));
    return takes;
  }
  return std::nullopt;
}

// The module under diagnosis that a dotted name belongs to; "" if the name belongs to a Python sibling.
std::string module_of_callee(const Snapshot& snapshot, const std::string& callee) {
  for (const std::string& module : snapshot.modules)
    if (callee.starts_with(module + ".") && callee.find('.', module.size() + 1) == std::string::npos)
      return module;
  return {};
}

// Tries the sources in the order described above.
std::optional<Takes> what_it_takes(const Snapshot& snapshot, const std::string& callee, int arguments) {
  const std::string module = module_of_callee(snapshot, callee);
  if (module.empty()) {
    if (auto takes = seen_in_python(snapshot, callee)) return takes;
    return defined_in_python(snapshot, callee);
  }
  const std::string function = callee.substr(module.size() + 1);
  // If an imported module documents nothing for a function, pybind11 did not bind it, and the file's
  // texts describe others.
  if (const Observation* seen = deciding_import(snapshot, module); seen != nullptr && seen->outcome == "ok")
    return documented_by(snapshot, *seen, function);
  if (auto takes = of_no_function(snapshot, module, arguments)) return takes;
  return of_the_release(snapshot, module, callee);
}

// Indices into packages.calls: all calls of one function by one package.
using Calls = std::vector<std::size_t>;

Finding signature_mismatch(const Snapshot& snapshot, const Calls& calls, const Takes& takes) {
  const auto& all = snapshot.packages.value.calls;
  const PackageCall& first = all[calls.front()];
  const std::string module = module_of_callee(snapshot, first.callee);
  const std::string top = first.callee.substr(0, first.callee.find('.'));
  Finding finding{
      .cause = Cause::SignatureMismatch,
      .subject = first.file,
      .module = module.empty() ? top : module,
      .summary = message("{} calls {} with {} ({}:{}), and {}",
                         which_copy(snapshot, first.package, first.version), first.callee,
                         message_n(static_cast<std::size_t>(first.arguments), "{} argument", "{} arguments",
                                   first.arguments),
                         first.file, first.line, takes.words),
      .evidence = {},
      .fixes = module_or(snapshot, module,
                         Advice{message("install matching releases of {} and {}: every such call fails, "
                                        "although the import works",
                                        first.package, top)})};
  for (const std::size_t i : calls) {
    const std::string pointer = "/packages/value/calls/" + std::to_string(i);
    finding.evidence.push_back({pointer + "/line", std::to_string(all[i].line)});
    finding.evidence.push_back({pointer + "/arguments", std::to_string(all[i].arguments)});
  }
  finding.evidence.insert(finding.evidence.end(), takes.evidence.begin(), takes.evidence.end());
  return finding;
}

// The import has shown that the module does not have the function at all.
std::optional<Finding> function_not_there(const Snapshot& snapshot, const Calls& calls) {
  const auto& all = snapshot.packages.value.calls;
  const PackageCall& first = all[calls.front()];
  const std::string module = module_of_callee(snapshot, first.callee);
  const Observation* seen = module.empty() ? nullptr : deciding_import(snapshot, module);
  if (seen == nullptr || seen->outcome != "ok") return std::nullopt;
  const std::string function = first.callee.substr(module.size() + 1);
  const auto lacking = std::ranges::find(seen->lacks, function);
  if (lacking == seen->lacks.end()) return std::nullopt;
  const std::string observation = "/observations/value/" +
                                  std::to_string(seen - snapshot.observations.value.data()) + "/lacks/" +
                                  std::to_string(lacking - seen->lacks.begin());
  return Finding{
      .cause = Cause::SignatureMismatch,
      .subject = first.file,
      .module = module,
      .summary = message("{} calls {} ({}:{}), but the installed {} has no such function",
                         which_copy(snapshot, first.package, first.version), first.callee, first.file,
                         first.line, module),
      .evidence = {{observation, function},
                   {"/packages/value/calls/" + std::to_string(calls.front()) + "/callee", first.callee}},
      .fixes = module_or(snapshot, module,
                         Advice{message("install matching releases of {} and {}", first.package, module)})};
}

Message nothing_is_called(const Snapshot& snapshot) {
  return snapshot.packages.value.calls.empty() ? message("no installed package calls the modules") : "";
}

// A package that calls a function with several numbers of arguments supports several releases of it.
// There is a finding only if all of its calls are wrong and none of them has an unknown number.
CheckResult call_signatures_match(const Snapshot& snapshot) {
  CheckResult result;
  const auto& all = snapshot.packages.value.calls;
  std::map<std::pair<std::string, std::string>, Calls> groups;
  for (std::size_t i = 0; i < all.size(); ++i) groups[{all[i].package, all[i].callee}].push_back(i);
  for (const auto& [key, calls] : groups) {
    if (auto finding = function_not_there(snapshot, calls)) {
      result.findings.push_back(*std::move(finding));
      continue;
    }
    std::optional<Takes> takes;
    const bool all_wrong = std::ranges::all_of(calls, [&](std::size_t i) {
      if (all[i].arguments < 0) return false;
      takes = what_it_takes(snapshot, all[i].callee, all[i].arguments);
      return takes && !takes->accepts(all[i].arguments);
    });
    if (all_wrong && takes) result.findings.push_back(signature_mismatch(snapshot, calls, *takes));
  }
  return result;
}

}  // namespace

extern const Check kCallSignaturesMatch{
    .id = "call-signatures-match",
    .question = "Do the packages call the modules with the right number of arguments?",
    .needs = kPython | kPackages,
    .confirmed_by_import = false,
    .not_applicable = nothing_is_called,
    .run = call_signatures_match};
}  // namespace scankit::checks
