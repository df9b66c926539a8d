// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "doctor/base/message.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/checks/check.h"
#include "doctor/checks/repairs.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/knowledge/faults.h"
#include "doctor/knowledge/known_packages.h"
#include "doctor/knowledge/python_names.h"

namespace scankit::checks {
namespace {

Message sureness(const std::string& word) {
  if (word == "certain") return message("certain");
  return word == "likely" ? message("likely") : message("possible");
}

// Offers scankit's own module, if the log is about one that scankit carries and a new module would help.
Message our_module_serves(const LogHit& hit, Cause cause) {
  const bool it_would = cause == Cause::TorchVersionMismatch || cause == Cause::AbiCxx11Mismatch ||
                        cause == Cause::MissingCudart || cause == Cause::NvccMissing ||
                        cause == Cause::ModuleNotBuilt;
  if (!it_would || !is_bundled_module(hit.module)) return {};
  return message(
      "install scankit's own {}, which needs neither libtorch nor a CUDA runtime: scankit fix --module {}",
      hit.module, hit.module);
}

bool isolated(Cause cause) {
  return cause == Cause::TorchMissingAtBuild || cause == Cause::BuildIsolationWrongTorch ||
         cause == Cause::NvccPresentButIsolated;
}

// What the user ran, as a build that sees the torch of the environment. "" where that has none.
std::string build_again(const Snapshot& snapshot) {
  const bool sees_torch =
      snapshot.command && snapshot.torch.present() && !snapshot.torch.value.version.empty();
  return sees_torch ? without_isolation(snapshot.command->words) : "";
}

// A package that is not there. scankit installs the two whose modules it builds. Others with CUDA code are compiled
// against the installed torch, most of them from a repository: a command for the index would not work.
Fix install_missing(const std::string& package, Cause cause, bool has_python) {
  if (package.empty()) return Advice{message("install the package that the message names")};
  if (const auto part = knowledge::optional_part_of_python(package))
    return install_part_of_python(package, *part);
  if (knowledge::is_of_python(package))
    return Advice{message("use another Python: {} belongs to Python itself, and no index has it", package)};
  const auto known = knowledge::distribution_of_import_name(package);
  if (cause == Cause::MissingPythonDependency) {
    if (has_python && known) return InstallPackages{{*known}};
    return Advice{known ? message("install it: python -m pip install {}", *known)
                        : message("probably install it: python -m pip install {}", package)};
  }
  if (!knowledge::is_model_package(package))
    return Advice{
        message("install {} from the repository or the index that its project names; it is compiled "
                "against the installed torch",
                package)};
  if (has_python) return InstallModelPackage{normalized_name(package)};
  return Advice{message("install it: scankit fix --package {}", normalized_name(package))};
}

// The rule's own repair; where a clue has made the hit mean something else, the clue's. "" for none.
std::string own_repair(const LogHit& hit, const std::vector<LogHit>& hits) {
  const auto repair_of = [&hit](const std::string& id) {
    const knowledge::LogRule* rule = knowledge::log_rule(id);
    return rule != nullptr && rule->cause == hit.cause ? rule->repair : std::string();
  };
  if (const std::string own = repair_of(hit.rule); !own.empty()) return own;
  for (const LogHit& clue : hits)
    if (clue.role == "clue")
      if (const std::string own = repair_of(clue.rule); !own.empty()) return own;
  return "";
}

std::string fact_of(const LogHit& hit, const std::string& name) {
  const auto fact = std::ranges::find(hit.facts, name, &LogFact::name);
  return fact == hit.facts.end() ? "" : fact->value;
}

std::string installed_version(const Snapshot& snapshot, const std::string& distribution) {
  if (distribution == "torch" && snapshot.torch.present()) return snapshot.torch.value.version;
  const Distribution* found = find_distribution(snapshot.distributions.value, distribution);
  return found == nullptr ? "" : found->version;
}

// What to do about a name that the imported release does not have yet, or has no longer. Empty where no release is known.
Message release_to_install(const Snapshot& snapshot, const LogHit& hit, Cause cause) {
  // torch pins its triton, and what was not built, or is a fork's, no release of the index has.
  const bool of_releases = cause == Cause::TorchTooOldForSources || cause == Cause::TorchApiRemovedInSource ||
                           cause == Cause::PackageReleasesDiffer || cause == Cause::TransformersIncompatible;
  const std::string first = fact_of(hit, "first_release"), gone = fact_of(hit, "gone_in");
  if (!of_releases || (first.empty() && gone.empty())) return {};
  const std::string distribution = fact_of(hit, "distribution");
  const std::string here = installed_version(snapshot, distribution);
  if (!here.empty() && (first.empty() || meets(here, ">=" + first)) &&
      (gone.empty() || meets(here, "<" + gone)))
    return message(
        "the installed {} {} has it: the program imports another copy, or the log is from another "
        "environment",
        distribution, here);
  if (!first.empty() && !gone.empty())
    return message(
        "install {} {} or newer, but older than {}, or a version of the importing code that works with the "
        "installed one",
        distribution, first, gone);
  if (!first.empty())
    return message(
        "install {} {} or newer, or a version of the importing code that works with the installed one",
        distribution, first);
  return message(
      "install {} older than {}, or a version of the importing code that works with the installed one",
      distribution, gone);
}

// Without the facts of a machine, commands are part of the sentences and no fix of their own: a log does not
// say for which Python they would be.
std::vector<Fix> log_fixes(const Snapshot& snapshot, const LogHit& hit, Cause cause) {
  std::vector<Fix> fixes;
  if (const Message ours = our_module_serves(hit, cause); !ours.empty()) fixes.emplace_back(Advice{ours});
  const std::string named = fact_of(hit, "module");
  const std::string& package = named.empty() ? hit.module : named;
  if (const std::string own = own_repair(hit, snapshot.log.value.hits); !own.empty())
    fixes.emplace_back(Advice{table_text(own)});
  else if (const Message release = release_to_install(snapshot, hit, cause); !release.empty())
    fixes.emplace_back(Advice{release});
  else if (cause == Cause::PackageNotInstalled || cause == Cause::MissingPythonDependency)
    fixes.push_back(install_missing(package, cause, snapshot.python.present()));
  else if (const std::string again = isolated(cause) ? build_again(snapshot) : ""; !again.empty())
    fixes.push_back(shell_advice(table_text(info(cause).next_step), again));
  else if (cause == Cause::ExecutableStack && refuses_executable_stacks(snapshot) == true)
    fixes.push_back(executable_stack_from_the_start(snapshot));
  else
    fixes.emplace_back(Advice{table_text(std::string(info(cause).next_step))});
  return fixes;
}

// The finding for hit `i`. Its module is the one that the log names, else the only module under
// diagnosis, else "log".
Finding log_finding(const Snapshot& snapshot, const Log& log, std::size_t i, Cause cause) {
  const LogHit& hit = log.hits[i];
  const std::string at = "/log/value/hits/" + std::to_string(i) + "/";
  Finding finding;
  finding.cause = cause;
  finding.subject = hit.file.empty() ? (log.source == "-" ? "standard input" : log.source) : hit.file;
  finding.module = hit.module;
  if (finding.module.empty()) finding.module = snapshot.modules.size() == 1 ? snapshot.modules[0] : "log";
  finding.summary = message("line {} of the log: {} ({})", hit.line, hit.meaning, sureness(hit.sure));
  finding.evidence = {{at + "text", hit.text}, {at + "line", std::to_string(hit.line)}};
  for (std::size_t fact = 0; fact < hit.facts.size(); ++fact)
    finding.evidence.push_back({at + "facts/" + std::to_string(fact) + "/value", hit.facts[fact].value});
  if (!hit.settles.empty()) finding.fixes.push_back(Advice{message("to be sure, check {}", hit.settles)});
  for (Fix& fix : log_fixes(snapshot, hit, cause)) finding.fixes.push_back(std::move(fix));
  return finding;
}

// The first 200 bytes of each line that looks like an error.
Message quoted_lines(const Log& log) {
  Message out;
  for (const LogLine& line : log.unexplained)
    out = clauses_of({out, message("line {}: {}", line.line, line.text.substr(0, 200))});
  return out;
}

}  // namespace

extern const Check kLogExplained{
    .id = "log-explained",
    .question = "Is the log free of errors?",
    .needs = kLog,
    .run =
        [](const Snapshot& snapshot) {
          CheckResult result;
          const Log& log = snapshot.log.value;
          bool root = false;
          for (std::size_t i = 0; i < log.hits.size(); ++i) {
            const LogHit& hit = log.hits[i];
            const auto cause = cause_from_slug(hit.cause);
            if (!cause && hit.role == "root")
              result.unknown.push_back(message("line {} of the log: {}", hit.line, hit.meaning));
            if (hit.role == "warning")
              result.remarks.push_back(message("line {} of the log: {}", hit.line, hit.meaning));
            if (!cause) continue;
            Finding finding = log_finding(snapshot, log, i, *cause);
            const bool ended = hit.role == "root";
            finding.circumstances = {ended ? Circumstance::EndedLog : Circumstance::MentionedInLog};
            root = root || ended;
            result.findings.push_back(std::move(finding));
          }
          const bool only_warnings = !result.remarks.empty() && log.unexplained.empty();
          if (!root && result.unknown.empty() && !only_warnings)
            result.unknown.push_back(
                log.unexplained.empty()
                    ? message("no line of the log is an error that scankit knows")
                    : message("no known error in the log; these lines look like errors: {}",
                              quoted_lines(log)));
          return result;
        },
    .asked = [](const Snapshot& snapshot) { return snapshot.log.state != ProbeState::NotRun; }};

namespace {

std::string line_of(const Finding& from_log) {
  const auto line = std::ranges::find_if(
      from_log.evidence, [](const Evidence& evidence) { return evidence.fact.ends_with("/line"); });
  return line == from_log.evidence.end() ? "" : line->value;
}

}  // namespace

// If the log and the facts name the same cause, they become one finding with the evidence of both. The
// log's finding is removed, because the other one knows the machine. A log that names no module may be
// about any of them.
void join_log(Report& report) {
  const auto is_log = [](const Outcome& outcome) { return outcome.check == "log-explained"; };
  const auto from_log = std::ranges::find_if(report.outcomes, is_log);
  if (from_log == report.outcomes.end()) return;
  const auto partner = [&](const Finding& wanted) -> Finding* {
    for (Outcome& outcome : report.outcomes) {
      if (is_log(outcome)) continue;
      for (Finding& finding : outcome.findings)
        if (finding.cause == wanted.cause && (finding.module == wanted.module || wanted.module == "log"))
          return &finding;
    }
    return nullptr;
  };
  std::map<Finding*, std::vector<std::string>> confirmed;  // by which lines
  std::erase_if(from_log->findings, [&](const Finding& finding) {
    Finding* other = partner(finding);
    if (other == nullptr) return false;
    other->evidence.insert(other->evidence.end(), finding.evidence.begin(), finding.evidence.end());
    if (finding.severity() == Severity::Error) other->circumstances.push_back(Circumstance::ConfirmedByLog);
    confirmed[other].push_back(line_of(finding));
    return true;
  });
  for (const auto& [finding, lines] : confirmed)
    finding->summary =
        clauses_of({finding->summary, message_n(lines.size(), "confirmed by line {} of the log",
                                                "confirmed by lines {} of the log", join(lines))});
}

}  // namespace scankit::checks
