// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/repairs.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

std::string not_tried(const Snapshot& snapshot) {
  const auto& seen = snapshot.observations;
  if (seen.state == ProbeState::NotRun)
    return seen.note.empty() ? say("no import was tried") : say("no import was tried: {}", retold(seen.note));
  return seen.state == ProbeState::Absent ? retold(seen.note) : "";
}

std::string import_left_out(const Snapshot& snapshot) {
  return snapshot.observations.state == ProbeState::NotRun ? not_tried(snapshot) : "";
}

std::string what_was_tried(const Observation& seen) {
  if (seen.variant == "start") return say("the interpreter's own start");
  return seen.variant == "torch-first" ? say("`import {}` after torch", seen.module)
                                       : say("`import {}`", seen.module);
}

std::string how_it_ended(const Observation& seen) {
  const std::string tried = what_was_tried(seen);
  if (seen.outcome == "timeout")
    return say("{} did not end within {} s", tried, (seen.duration_ms + 500) / 1000);
  return seen.signal != 0 ? say("{} killed the process", tried) : say("{} did not come back", tried);
}

Finding ended_badly(const Snapshot& snapshot, const Observation& seen, const std::string& pointer,
                    const std::string& subject) {
  const bool hung = seen.outcome == "timeout";
  const Cause cause = hung ? Cause::ImportHang : Cause::ImportCrash;
  Finding finding{.cause = cause,
                  .subject = subject,
                  .module = seen.module,
                  .summary = how_it_ended(seen),
                  .evidence = {{pointer + "/outcome", seen.outcome}},
                  .fixes = module_or(snapshot, seen.module, Advice{said(info(cause).next_step)})};
  if (!seen.message.empty()) {
    finding.summary += ": " + retold(seen.message);
    finding.evidence.push_back({pointer + "/message", seen.message});
  }
  if (!hung) finding.evidence.push_back({pointer + "/signal", std::to_string(seen.signal)});
  return finding;
}

std::string subject_of(const Snapshot& snapshot, const Observation& seen) {
  if (seen.variant == "start") return snapshot.python.value.requested;
  const auto copy = selected_copy(snapshot, seen.module);
  return copy ? copy->extension->path : seen.module;
}

bool imports_it(const Snapshot& snapshot, const std::string& package, const std::string& module) {
  return std::ranges::any_of(snapshot.packages.value.imports, [&](const PackageImport& import) {
    return import.package == package && import.target == module;
  });
}

// A package that hangs or dies in its module's import does so because of the module: that finding names both.
bool told_of_its_module(const Snapshot& snapshot, const Observation& seen, const std::string& pointer,
                        std::vector<Finding>& findings) {
  if (seen.variant != "package" && seen.variant != "sibling") return false;
  const Cause cause = seen.outcome == "timeout" ? Cause::ImportHang : Cause::ImportCrash;
  for (Finding& finding : findings) {
    if (finding.cause != cause || !imports_it(snapshot, seen.module, finding.module)) continue;
    finding.summary =
        seen.raised_at.empty()
            ? say("{}; `import {}` ends the same way", finding.summary, seen.module)
            : say("{}; `import {}` ends the same way, at {}", finding.summary, seen.module, seen.raised_at);
    finding.evidence.push_back({pointer + "/outcome", seen.outcome});
    return true;
  }
  return false;
}

// Errors of an import are weighed against what the other checks found, in reconcile.cc.
CheckResult import_observed(const Snapshot& snapshot) {
  if (snapshot.observations.state == ProbeState::Failed) return {{}, {retold(snapshot.observations.note)}};
  CheckResult result;
  const auto& all = snapshot.observations.value;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Observation& seen = all[i];
    if (&seen != deciding_import(snapshot, seen.module)) continue;
    if (seen.outcome != "crashed" && seen.outcome != "timeout") continue;
    const std::string pointer = "/observations/value/" + std::to_string(i);
    if (told_of_its_module(snapshot, seen, pointer, result.findings)) continue;
    result.findings.push_back(ended_badly(snapshot, seen, pointer, subject_of(snapshot, seen)));
  }
  return result;
}

}  // namespace

extern const Check kImportObserved{.id = "import-observed",
                                   .question = "Do torch and the modules import in a process of their own?",
                                   .needs = 0,
                                   .settled_by_import = false,
                                   .not_applicable = not_tried,
                                   .run = import_observed,
                                   .left_out = import_left_out};
}  // namespace scankit
