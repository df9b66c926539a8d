// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

bool same_content(const Extension& a, const Extension& b) {
  return a.real_path == b.real_path || (a.size == b.size && !a.build_id.empty() && a.build_id == b.build_id);
}

// The winner is broken, a loser is not: moving the winner away is the whole repair.
Finding shadowing(const Copy& winner, const Copy& good, const std::string& obstacle) {
  return {.cause = Cause::SeveralCopies,
          .subject = winner->path,
          .module = winner->module,
          .summary = say("this copy ({}) comes first and hides a good one: {}", obstacle, good->path),
          .evidence = {winner.at("path", winner->path), good.at("path", good->path)},
          .fixes = {RemoveShadow{winner->path, winner->module}}};
}

// Where a user may not write to the environment, scankit fix puts its copy into a folder of that user's,
// which comes first: the other copy is somebody else's to move, and does no harm.
bool is_covered_on_purpose(const Copy& winner, const Copy& other) {
  return winner->distribution.starts_with("scankit-") && winner->sys_path_index < other->sys_path_index;
}

Finding harmless(const Copy& winner, const std::vector<Copy>& others) {
  const std::size_t n = others.size();
  Finding finding{
      .cause = Cause::SeveralCopies,
      .subject = winner->path,
      .module = winner->module,
      .summary = say_n(n, "{} other file of {} lies on the path and is not used",
                       "{} other files of {} lie on the path and are not used", n, winner->module),
      .fixes = {Advice{say("move the unused files away")}},
      .severity_override = Severity::Note};
  for (const Copy& other : others) {
    finding.evidence.push_back(other.at("path", other->path));
    // Which of two different files wins depends on the folder and the variables of the shell that starts
    // Python.
    if (other->why_not_selected.starts_with("shadowed") && !same_content(*winner, *other) &&
        !is_covered_on_purpose(winner, other))
      finding.severity_override = Severity::Warning;
  }
  return finding;
}

CheckResult single_copy(const Snapshot& snapshot) {
  CheckResult result;
  for (const Copy& winner : selected_copies(snapshot)) {
    std::vector<Copy> others;
    for (const Copy& copy : copies(snapshot))
      if (copy->module == winner->module && !copy->selected && copy->sys_path_index >= 0 &&
          copy->real_path != winner->real_path)
        others.push_back(copy);
    if (others.empty()) continue;
    const auto obstacle = static_obstacle(snapshot, *winner);
    const auto good = std::ranges::find_if(others, [&](const Copy& other) {
      return suffix_fits(snapshot, *other) && static_obstacle(snapshot, *other) == "";
    });
    if (obstacle && !obstacle->empty() && good != others.end())
      result.findings.push_back(shadowing(winner, *good, *obstacle));
    else
      result.findings.push_back(harmless(winner, others));
  }
  return result;
}

}  // namespace

extern const Check kSingleCopy{.id = "single-copy",
                               .question = "Is there one file of each module, or does the right one win?",
                               .needs = kPython | kExtensions,
                               .settled_by_import = true,
                               .not_applicable = no_copy_found,
                               .run = single_copy};
}  // namespace scankit
