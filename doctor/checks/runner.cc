// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/runner.h"

#include <exception>
#include <utility>

#include "doctor/checks/check.h"
#include "doctor/checks/view.h"

namespace scankit {

#define CHECK(constant) extern const Check constant;
#include "doctor/checks/checks.def"
#undef CHECK

const std::vector<const Check*>& all_checks() {
  static const std::vector<const Check*> checks = {
#define CHECK(constant) &constant,
#include "doctor/checks/checks.def"
#undef CHECK
  };
  return checks;
}

namespace {

struct Missing {
  std::string absent, unknown;
};

template <class T>
void look(const Probed<T>& fact, const char* name, Missing& missing) {
  const std::string why = std::string(name) + ": " + (fact.note.empty() ? "not probed" : fact.note);
  if (fact.state == ProbeState::Absent && missing.absent.empty()) missing.absent = why;
  if ((fact.state == ProbeState::Failed || fact.state == ProbeState::NotRun) && missing.unknown.empty())
    missing.unknown = why;
}

Missing whole_facts(unsigned needs, const Snapshot& snapshot) {
  Missing missing;
  if (needs & kPython) look(snapshot.python, "Python", missing);
  if (needs & kTorch) look(snapshot.torch, "torch", missing);
  if (needs & kExtensions) look(snapshot.extensions, "modules", missing);
  if (needs & kGpus) look(snapshot.gpus, "GPUs", missing);
  // That nothing imports a module is an answer, not a reason to look away.
  if ((needs & kImporters) && snapshot.importers.state != ProbeState::Absent)
    look(snapshot.importers, "importers", missing);
  return missing;
}

// Facts about single files: what is known about the others still counts.
std::vector<std::string> partial_facts(unsigned needs, const Snapshot& snapshot) {
  std::vector<std::string> unknown;
  for (const Copy& copy : selected_copies(snapshot)) {
    const std::string& state = copy->file_state;
    if ((needs & (kContents | kClosures)) && (state == "unreadable" || state == "vanished"))
      unknown.push_back(copy->path + ": " + (copy->file_detail.empty() ? state : copy->file_detail));
    else if ((needs & kClosures) && state == "elf" && !copy->resolved)
      unknown.push_back(
          copy->path + ": " +
          (copy->resolution_note.empty() ? "its libraries were not resolved" : copy->resolution_note));
  }
  return unknown;
}

}  // namespace

Outcome run_check(const Check& check, const Snapshot& snapshot) {
  Outcome outcome{.check = std::string(check.id), .question = std::string(check.question)};
  const auto end = [&](CheckState state, std::string why) {
    outcome.state = state;
    outcome.why = std::move(why);
    outcome.could_hide_error = state == CheckState::Unknown || state == CheckState::Crashed;
    return outcome;
  };
  const Missing missing = whole_facts(check.needs, snapshot);
  if (!missing.unknown.empty()) return end(CheckState::Unknown, missing.unknown);
  if (!missing.absent.empty()) return end(CheckState::NotApplicable, missing.absent);
  try {
    if (check.not_applicable != nullptr)
      if (const std::string why = check.not_applicable(snapshot); !why.empty())
        return end(CheckState::NotApplicable, why);
    CheckResult result = check.run(snapshot);
    for (std::string& line : partial_facts(check.needs, snapshot)) result.unknown.push_back(std::move(line));
    outcome.findings = std::move(result.findings);
    outcome.not_checked = std::move(result.not_checked);
    const auto state = !outcome.findings.empty() ? CheckState::Found
                       : !result.unknown.empty() ? CheckState::Unknown
                                                 : CheckState::Passed;
    end(state, join(result.unknown, "; "));
    outcome.could_hide_error = !result.unknown.empty();
    return outcome;
  } catch (const std::exception& bug) {
    return end(CheckState::Crashed, bug.what());
  }
}

Report diagnose(Snapshot snapshot) {
  Report report;
  for (const Check* check : all_checks()) report.outcomes.push_back(run_check(*check, snapshot));
  report.snapshot = std::move(snapshot);
  reconcile(report);
  return report;
}

}  // namespace scankit
