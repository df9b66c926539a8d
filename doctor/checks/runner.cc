// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <utility>

#include "doctor/base/message.h"
#include "doctor/base/text.h"
#include "doctor/checks/check.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/model/snapshot_variables.h"

// Those of doctor/preflight are in a namespace of their own.
#define CHECK(space, constant)                  \
  namespace scankit::space {                    \
  extern const scankit::checks::Check constant; \
  }
#include "doctor/checks/checks.def"
#undef CHECK

namespace scankit::checks {

const std::vector<const Check*>& all_checks() {
  static const std::vector<const Check*> checks = {
#define CHECK(space, constant) &scankit::space::constant,
#include "doctor/checks/checks.def"
#undef CHECK
  };
  return checks;
}

namespace {

// Why a check cannot run: a fact says that there is nothing to look at, or a fact is not known. The first
// reason counts.
struct Missing {
  Message absent, unknown;
  bool left_out = false;  // absent since this snapshot was taken without it
};

// Absent makes a check not applicable, Failed and NotRun make it unknown (ARCHITECTURE.md, decision 4).
template <class T>
void look_at_fact(const Probed<T>& fact, const Message& name, Missing& missing) {
  if (fact.present()) return;
  const Message why = message("{}: {}", name, why_missing(fact));
  if (fact.state == ProbeState::Absent && missing.absent.empty()) missing.absent = why;
  if ((fact.state == ProbeState::Failed || fact.state == ProbeState::NotRun) && missing.unknown.empty())
    missing.unknown = why;
}

// Looks at the facts about the whole environment that the check needs.
Missing whole_facts(unsigned needs, const Snapshot& snapshot) {
  Missing missing;
  if (needs & kPython) look_at_fact(snapshot.python, message("Python"), missing);
  if (needs & kTorch) look_at_fact(snapshot.torch, message("torch"), missing);
  if (needs & kExtensions) look_at_fact(snapshot.extensions, message("modules"), missing);
  if (needs & kGpus) look_at_fact(snapshot.gpus, message("GPUs"), missing);
  // A snapshot of an earlier release does not contain them, so there is nothing to look at.
  if ((needs & kPackages) && snapshot.packages.state != ProbeState::NotRun)
    look_at_fact(snapshot.packages, message("packages"), missing);
  else if ((needs & kPackages) && missing.absent.empty())
    missing = {message("the packages around the modules were not read"), missing.unknown, true};
  // That nothing imports a module is an answer, and no reason to skip the check.
  if ((needs & kImporters) && snapshot.importers.state != ProbeState::Absent)
    look_at_fact(snapshot.importers, message("importers"), missing);
  if ((needs & kLog) && snapshot.log.state == ProbeState::NotRun)
    missing.absent = message("no log was given");
  else if (needs & kLog)
    look_at_fact(snapshot.log, message("log"), missing);
  // There is no source directory, or the snapshot is from before they were examined: nothing is
  // going to be built.
  const bool no_sources =
      snapshot.sources.state == ProbeState::Absent || snapshot.sources.state == ProbeState::NotRun;
  if ((needs & kSources) && no_sources && missing.absent.empty()) {
    missing.absent = message("no source directory");
    missing.unknown = {};
  }
  if ((needs & kSources) && !no_sources) look_at_fact(snapshot.sources, message("sources"), missing);
  if ((needs & kSources) && snapshot.sources.present())
    look_at_fact(snapshot.build_tools, message("build tools"), missing);
  return missing;
}

// What partial_facts() returns; `usable` counts the files whose contents are known.
struct Partial {
  std::vector<Message> unknown, not_checked;
  std::size_t usable = 0;
};

// Looks at the facts about single files. What is known about the other files still counts. A file that
// is not a library, or is made for another machine, leaves nothing to ask about its contents; another
// check reports it.
Partial partial_facts(unsigned needs, const Snapshot& snapshot) {
  Partial partial;
  const std::string machine = interpreter_machine(snapshot);
  for (const Copy& copy : selected_copies(snapshot)) {
    const std::string& state = copy->file_state;
    const auto about = [&](const Message& detail, const Message& otherwise) {
      const Message& problem = detail.empty() ? otherwise : detail;
      const bool names_it = problem.english().find(copy->path) != std::string::npos;
      return names_it ? problem : message("{}: {}", copy->path, problem);
    };
    if (state == "unreadable" || state == "vanished")
      partial.unknown.push_back(
          about(copy->file_detail, state == "vanished" ? message("disappeared") : message("unreadable")));
    else if ((needs & (kImages | kClosures)) && state != "elf")
      partial.not_checked.push_back(about("", message("not a complete library")));
    else if ((needs & kClosures) && !machine.empty() && !copy->machine.empty() && copy->machine != machine)
      partial.not_checked.push_back(about("", message("built for {}", copy->machine)));
    else if ((needs & kClosures) && !copy->resolved)
      partial.unknown.push_back(about(copy->resolution_note, message("its libraries were not resolved")));
    else
      ++partial.usable;
    if (!(needs & kClosures) || !copy->resolved) continue;
    for (const Message& line : copy->undecided) partial.unknown.push_back(about(line, ""));
    for (const Message& line : copy->taken_on_trust) partial.not_checked.push_back(about(line, ""));
  }
  return partial;
}

}  // namespace

// The order: a lone log, missing facts, not_applicable, and only then the check itself. What
// partial_facts() adds can turn a pass into Unknown, but never removes a finding.
Outcome run_check(const Check& check, const Snapshot& snapshot) {
  Outcome outcome{.check = std::string(check.id), .question = table_text(check.question)};
  const auto end = [&](CheckState state, Message why) {
    outcome.state = state;
    outcome.why = std::move(why);
    outcome.could_hide_error = state == CheckState::Unknown || state == CheckState::Crashed;
    outcome.not_asked =
        state == CheckState::NotApplicable && check.asked != nullptr && !check.asked(snapshot);
    return outcome;
  };
  if (!(check.needs & kLog) && snapshot.log.present() && snapshot.log.value.alone)
    return end(CheckState::NotApplicable, message("only a log was given"));
  const auto not_applicable = [&](const Message& why, bool left_out = false) {
    const Message more = check.left_out == nullptr ? Message() : check.left_out(snapshot);
    outcome.left_out = left_out || !more.empty();
    return end(CheckState::NotApplicable, more.empty() ? why : more);
  };
  const Missing missing = whole_facts(check.needs, snapshot);
  // One finding says so already, and the verdict cannot be healthy (environment_python_gone).
  if (!missing.unknown.empty() && snapshot.broken_environment)
    return not_applicable(message("the active environment's Python cannot be used"));
  if (!missing.unknown.empty()) return end(CheckState::Unknown, missing.unknown);
  if (!missing.absent.empty()) return not_applicable(missing.absent, missing.left_out);
  try {
    if (check.not_applicable != nullptr)
      if (const Message why = check.not_applicable(snapshot); !why.empty()) return not_applicable(why);
    CheckResult result = check.run(snapshot);
    if (check.needs & (kContents | kImages | kClosures)) {
      const Partial partial = partial_facts(check.needs, snapshot);
      // All files turned out to have nothing to ask about.
      const bool nothing_left =
          partial.usable == 0 && partial.unknown.empty() && !partial.not_checked.empty();
      if (nothing_left && result.findings.empty() && result.unknown.empty())
        return end(CheckState::NotApplicable, clauses_of(partial.not_checked));
      result.unknown.insert(result.unknown.end(), partial.unknown.begin(), partial.unknown.end());
      result.not_checked.insert(result.not_checked.end(), partial.not_checked.begin(),
                                partial.not_checked.end());
    }
    outcome.findings = std::move(result.findings);
    outcome.not_checked = std::move(result.not_checked);
    const auto state = !outcome.findings.empty() ? CheckState::Found
                       : !result.unknown.empty() ? CheckState::Unknown
                                                 : CheckState::Passed;
    end(state, clauses_of(state == CheckState::Passed ? result.remarks : result.unknown));
    // A check with a finding can also leave something open.
    outcome.could_hide_error = !result.unknown.empty();
    return outcome;
  } catch (const std::exception& bug) {
    // A bug in a check must not cost the answers of the others.
    return end(CheckState::Crashed, bug.what());
  }
}

Report diagnose(Snapshot snapshot) {
  Report report;
  for (const Check* check : all_checks()) report.outcomes.push_back(run_check(*check, snapshot));
  report.snapshot = std::move(snapshot);
  reconcile(report);
  join_log(report);
  decide_root_cause(report);
  return report;
}

}  // namespace scankit::checks
