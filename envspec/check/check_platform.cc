// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/checks/snapshot_queries.h"
#include "envspec/check/check.h"

// The questions of a spec about Python, torch, the driver and the compiler. A field that the spec leaves
// empty asks no question.
namespace scankit::envspec {
namespace {

// One question, and what a finding about it says.
struct Demand {
  const char* check;
  Message question;
  std::string path;
  Cause cause{};
  Message subject;
  std::string module, pointer;  // of the finding; pointer into the snapshot
};

Finding finding_of(const Spec& spec, const Demand& demand, Message summary, const std::string& here) {
  Finding finding;
  finding.cause = demand.cause;
  finding.subject = english(demand.subject);
  finding.module = demand.module;
  finding.summary = std::move(summary);
  finding.demanded_by = file_line(spec, demand.path);
  if (!here.empty()) finding.evidence.push_back({demand.pointer, here});
  return finding;
}

// False where the comparison cannot go on; an unknown fact is then noted in the outcome, an absent
// one is not.
template <class Fact>
bool is_known(Outcome& outcome, const Probed<Fact>& fact) {
  if (fact.present()) return true;
  if (fact.state != ProbeState::Absent) not_known(outcome, why_missing(fact));
  return false;
}

// A version that is absent is drift, since the spec demands one. A value that is not a version is unknown.
Outcome version_check(const Spec& spec, const Demand& demand, const VersionRange& range,
                      const Probed<std::string>& fact, const std::vector<Fix>& fixes) {
  Outcome outcome = asked(demand.check, demand.question);
  const auto add = [&](Message summary) {
    Finding finding = finding_of(spec, demand, std::move(summary), fact.value);
    finding.fixes = fixes;
    drifted(outcome, std::move(finding));
  };
  const std::string line = line_name(spec, demand.path);
  if (!is_known(outcome, fact)) {
    if (fact.state == ProbeState::Absent)
      add(message("{} requires {} {}, but none was found: {}", line, demand.subject, range.text(),
                  why_missing(fact)));
    return outcome;
  }
  const auto fits = range.contains(std::string_view(fact.value));
  if (!fits)
    not_known(outcome, message("\"{}\" is not a version that can be compared", fact.value));
  else if (!*fits)
    add(message("{} requires {} {}, but found {}", line, demand.subject, range.text(), fact.value));
  return outcome;
}

// The same for a field with a fixed list of words.
Outcome word_check(const Spec& spec, const Demand& demand, const std::string& wanted,
                   const Probed<std::string>& fact, const std::vector<Fix>& fixes) {
  Outcome outcome = asked(demand.check, demand.question);
  const bool differs = fact.present() ? fact.value != wanted : fact.state == ProbeState::Absent;
  is_known(outcome, fact);
  if (!differs) return outcome;
  const Message here = fact.present() ? Message(fact.value) : why_missing(fact);
  Finding finding = finding_of(
      spec, demand,
      message("{} requires {} {}, but it is {}", line_name(spec, demand.path), demand.subject, wanted, here),
      fact.value);
  finding.fixes = fixes;
  drifted(outcome, std::move(finding));
  return outcome;
}

void check_python(const Spec& spec, const EnvironmentFacts& facts, std::vector<Outcome>& out) {
  const std::vector<Fix> fixes = {
      Advice{message("recreate the environment with the Python in the spec, or edit the spec")}};
  if (!spec.python.empty())
    out.push_back(
        version_check(spec,
                      {"spec-python-version", message("Is the Python one of the versions in the spec?"),
                       "python.version", Cause::DriftPython, "Python", "python", "/python/value/version"},
                      spec.python, facts.python, fixes));
  if (!spec.implementation.empty())
    out.push_back(word_check(
        spec,
        {"spec-python-implementation", message("Is the Python implementation the one in the spec?"),
         "python.implementation", Cause::DriftPython, "Python", "python", "/python/value/implementation"},
        spec.implementation, facts.implementation, fixes));
}

void check_torch(const Spec& spec, const EnvironmentFacts& facts, std::vector<Outcome>& out) {
  if (!spec.torch.empty())
    out.push_back(
        version_check(spec,
                      {"spec-torch-version", message("Is torch one of the versions in the spec?"),
                       "torch.version", Cause::DriftTorch, "torch", "torch", "/torch/value/version"},
                      spec.torch, facts.torch,
                      {InstallPackages{{requirement("torch", spec.torch)}},
                       Advice{message("or edit the spec, if this torch is the one that you want")}}));
  // Where torch itself is missing and the spec demands a version of it, that finding is enough.
  if (!spec.cuda.empty() && !(facts.torch.state == ProbeState::Absent && !spec.torch.empty()))
    out.push_back(version_check(
        spec,
        {"spec-torch-cuda", message("Is torch built with the CUDA version in the spec?"), "torch.cuda",
         Cause::DriftCuda, message("torch's CUDA"), "torch", "/torch/value/cuda"},
        spec.cuda, facts.cuda,
        {Advice{message("install the build of torch for CUDA {}, from the index that provides it",
                        spec.cuda.text())}}));
  if (!spec.string_abi.empty() && !(facts.torch.state == ProbeState::Absent && !spec.torch.empty()))
    out.push_back(word_check(
        spec,
        {"spec-torch-string-abi", message("Does torch have the C++ string ABI in the spec?"),
         "torch.string_abi", Cause::DriftStringAbi, message("torch's string ABI"), "torch",
         "/torch/value/string_abi"},
        spec.string_abi, facts.string_abi,
        {Advice{message(
            "install a build of torch with the {} string ABI, or edit the spec and rebuild everything that "
            "is linked to torch",
            spec.string_abi)}}));
}

// A machine with neither GPU nor driver, such as a login node, is not drift: the question is left out.
void check_driver(const Spec& spec, const EnvironmentFacts& facts, std::vector<Outcome>& out) {
  if (spec.driver.empty()) return;
  const Demand demand{"spec-driver",
                      message("Is the NVIDIA driver one of the versions in the spec?"),
                      "driver",
                      Cause::DriftDriver,
                      message("the NVIDIA driver"),
                      "",
                      "/driver/value/version"};
  if (facts.driver.state == ProbeState::Absent && facts.gpus.state == ProbeState::Absent) {
    Outcome outcome = asked(demand.check, demand.question);
    left_out(outcome, message("the driver in the spec: neither a GPU nor a driver was found"));
    out.push_back(std::move(outcome));
    return;
  }
  out.push_back(
      version_check(spec, demand, spec.driver, facts.driver,
                    {Advice{message("install an NVIDIA driver {}, or edit the spec", spec.driver.text())}}));
}

std::string compilers_in_words(const std::vector<Compiler>& compilers) {
  std::vector<std::string> names;
  for (const Compiler& one : compilers) names.push_back(one.kind + " " + one.version);
  return join(names);
}

// Any of the compilers that were found may meet both demands, kind and version, at once.
void check_compiler(const Spec& spec, const EnvironmentFacts& facts, std::vector<Outcome>& out) {
  if (spec.compiler.empty() && spec.compiler_version.empty()) return;
  const std::string path = spec.compiler_version.empty() ? "host_compiler.kind" : "host_compiler.version";
  const Message kind = spec.compiler.empty() ? message("a C++ compiler") : Message(spec.compiler);
  Outcome outcome = asked("spec-compiler", message("Does a C++ compiler here satisfy the spec?"));
  const Demand demand{outcome.check.c_str(), outcome.question, path, Cause::DriftCompiler, kind, "", ""};
  bool fits = false;
  for (const Compiler& one : facts.compilers.value)
    fits = fits || ((spec.compiler.empty() || one.kind == spec.compiler) &&
                    (spec.compiler_version.empty() ||
                     spec.compiler_version.contains(std::string_view(one.version)).value_or(false)));
  const bool known = is_known(outcome, facts.compilers) || facts.compilers.state == ProbeState::Absent;
  if (known && !fits) {
    const std::string here = compilers_in_words(facts.compilers.value);
    const std::string line = line_name(spec, path);
    Finding finding = finding_of(spec, demand,
                                 here.empty() ? message("{} requires {} {}, but no C++ compiler was found",
                                                        line, kind, spec.compiler_version.text())
                                              : message("{} requires {} {}, but found {}", line, kind,
                                                        spec.compiler_version.text(), here),
                                 "");
    finding.fixes = {Advice{message("install such a compiler, or edit the spec if nothing is built here")}};
    drifted(outcome, std::move(finding));
  }
  out.push_back(std::move(outcome));
}

}  // namespace

std::vector<Outcome> check_platform(const Spec& spec, const EnvironmentFacts& facts) {
  std::vector<Outcome> out;
  check_python(spec, facts, out);
  check_torch(spec, facts, out);
  check_driver(spec, facts, out);
  check_compiler(spec, facts, out);
  return out;
}

}  // namespace scankit::envspec
