// SPDX-License-Identifier: Apache-2.0
// A `scankit fix` that was killed left a journal, and perhaps half of the new state and half of the old one.
// What is broken by that, the other checks find; here stands the command that settles it. No catalogued
// cause: it is scankit's own state, not a class of faults of modules.
#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/checks/check.h"

namespace scankit {
namespace {

// `scankit restore` looks below the prefix, unless told of the user site or another folder.
std::string restore_command(const Snapshot& snapshot, const std::string& journal) {
  const Python& python = snapshot.python.value;
  const std::string base = journal.substr(0, journal.find("/.scankit/journal/"));
  std::string command =
      "scankit restore --python " + (python.requested.empty() ? python.executable : python.requested);
  if (base == python.prefix) return command;
  const bool on_path =
      std::ranges::any_of(python.sys_path, [&](const PathEntry& entry) { return entry.path == base; });
  return command + " --target " + (on_path ? base : "user");
}

// --so looks at files, not at an environment that a repair could have left half done.
std::string nothing_unfinished(const Snapshot& snapshot) {
  if (snapshot.repairs.state != ProbeState::NotRun) return "";
  if (!snapshot.named_files.empty()) return say("only the named files were looked at");
  return say("the snapshot does not say whether a repair was interrupted");
}
std::string repairs_left_out(const Snapshot& snapshot) {
  return snapshot.named_files.empty() ? nothing_unfinished(snapshot) : "";
}

CheckResult repairs_finished(const Snapshot& snapshot) {
  CheckResult result;
  if (snapshot.repairs.state == ProbeState::Failed) result.not_checked.push_back(snapshot.repairs.note);
  for (const UnfinishedRepair& repair : snapshot.repairs.value) {
    if (repair.running)
      result.not_checked.push_back(
          say("a scankit fix of {} is running ({}): diagnose again when it has ended", repair.module,
              repair.journal));
    else if (repair.state.empty())
      result.not_checked.push_back(
          say("{} is no journal that scankit wrote: fix and restore change nothing here while it is there",
              repair.journal));
    else
      result.not_checked.push_back(
          say("a scankit fix of {} was interrupted ({}, state {}): `{}` brings back what was there before",
              repair.module, repair.journal, repair.state, restore_command(snapshot, repair.journal)));
  }
  return result;
}

}  // namespace

extern const Check kRepairsFinished{.id = "repairs-finished",
                                    .question = "Did every scankit fix come to its end?",
                                    .needs = kPython,
                                    .settled_by_import = false,
                                    .not_applicable = nothing_unfinished,
                                    .run = repairs_finished,
                                    .left_out = repairs_left_out};
}  // namespace scankit
