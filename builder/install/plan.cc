// SPDX-License-Identifier: Apache-2.0
#include "builder/install/plan.h"

#include <algorithm>

#include "builder/install/distribution.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/checks/view.h"
#include "doctor/report/fixes.h"
#include "doctor/report/fold.h"

namespace scankit {
namespace {

bool is_installation(const Fix& fix) { return std::holds_alternative<InstallModule>(fix); }
bool is_removal(const Fix& fix) { return std::holds_alternative<RemoveShadow>(fix); }

bool can_do(const Finding& finding, const std::string& module) {
  return finding.severity() == Severity::Error && finding.module == module &&
         std::ranges::any_of(finding.fixes, [](const Fix& f) { return is_installation(f) || is_removal(f); });
}

// The root's own repair, else that of the first error that has one.
const Finding* finding_to_repair(const Report& report, const std::string& module) {
  if (const Finding* first = root(report); first != nullptr && can_do(*first, module)) return first;
  const auto found =
      std::ranges::find_if(report.findings, [&](const Finding& finding) { return can_do(finding, module); });
  return found == report.findings.end() ? nullptr : &*found;
}

bool holds(const Extension& extension, const Target& target) {
  return std::ranges::any_of(extension.images, [&](const DeviceImage& image) {
    return image.sm == target.sm && image.specific == target.specific && (image.kind == "ptx") == target.ptx;
  });
}

const Extension* our_copy_that_lacks(const Snapshot& snapshot, const std::string& module,
                                     const std::vector<Target>& wanted) {
  for (const Extension& extension : snapshot.extensions.value)
    if (extension.selected && extension.module == module &&
        path_basename(extension.path) == module_file(module) &&
        std::ranges::any_of(wanted, [&](const Target& target) { return !holds(extension, target); }))
      return &extension;
  return nullptr;
}

// Whether import would take this file before the one that is to stand in the place, or could never take it
// again: a second file in the same folder only leaves a reader in doubt.
bool hides(const Snapshot& snapshot, const Extension& extension, const InstallPlace& place) {
  if (extension.sys_path_index < 0 || !suffix_fits(snapshot, extension)) return false;
  const auto& path = snapshot.python.value.sys_path;
  const auto site = std::ranges::find(path, place.site, &PathEntry::path) - path.begin();
  // A folder that is on no path yet will be put first, by PYTHONPATH.
  if (site == std::ssize(path)) return false;
  // Which folder is the current one is no property of the environment.
  if (path[static_cast<std::size_t>(extension.sys_path_index)].origin == "cwd") return false;
  if (extension.sys_path_index != site) return extension.sys_path_index < site;
  return path_basename(extension.path) != module_file(extension.module);
}

std::vector<FixPlan::Move> hiding_copies(const Snapshot& snapshot, const std::string& module,
                                         const InstallPlace& place) {
  std::vector<FixPlan::Move> moves;
  for (const Extension& extension : snapshot.extensions.value)
    if (extension.module == module && hides(snapshot, extension, place))
      moves.insert(moves.begin(), {extension.path, extension.distribution});
  return moves;
}

void not_repairable(const Report& report, FixPlan& plan) {
  plan.kind = FixPlan::Kind::NotRepairable;
  for (const Finding& finding : report.findings) {
    if (finding.severity() != Severity::Error) continue;
    if (plan.why.empty()) plan.why = finding.summary;
    for (const Fix& fix : finding.fixes) {
      const std::string command = fix_command(fix, report.snapshot);
      plan.advice.push_back(command.empty() ? fix_sentence(fix) : command);
    }
  }
}

// Nothing wrong that concerns the module: is that because it works?
void no_error(const Report& report, const std::string& module, FixPlan& plan) {
  const Observation* seen = deciding_import(report.snapshot, module);
  if (seen != nullptr && seen->outcome == "ok") {
    plan.why = say("`import {}` works, from {}", module, seen->file);
    return;
  }
  plan.kind = FixPlan::Kind::Inconclusive;
  const std::string& note = report.snapshot.observations.note;
  plan.why = note.empty() ? say("no fault was found in {}, but its import was not seen to work", module)
                          : say("no fault was found in {}, but its import was not seen to work ({})", module,
                                retold(note));
}

}  // namespace

Result<FixPlan> plan_fix(const Report& report, const std::string& module, const InstallPlace& place,
                         const std::vector<Target>& wanted) {
  FixPlan plan;
  plan.place = place;
  if (report.snapshot.torch.state == ProbeState::Absent) {
    plan.kind = FixPlan::Kind::NotRepairable;
    plan.why = say("there is no torch here ({}), and {} works on its tensors",
                   retold(report.snapshot.torch.note), module);
    plan.advice = {say("install torch, then run scankit fix again")};
    return plan;
  }
  const Finding* finding = finding_to_repair(report, module);
  const Extension* lacking =
      finding == nullptr ? our_copy_that_lacks(report.snapshot, module, wanted) : nullptr;
  if (finding != nullptr) {
    plan.why = finding->summary;
    plan.install = std::ranges::any_of(finding->fixes, is_installation);
    for (const Fix& fix : finding->fixes)
      if (!plan.install && is_removal(fix)) plan.moves.push_back({std::get<RemoveShadow>(fix).path, ""});
  } else if (lacking != nullptr) {
    plan.why = say("{} does not hold what --arch names", lacking->path);
    plan.install = true;
  } else if (report.verdict == Verdict::Broken) {
    not_repairable(report, plan);
    return plan;
  } else {
    no_error(report, module, plan);
    return plan;
  }
  plan.kind = FixPlan::Kind::Act;
  if (plan.install) plan.moves = hiding_copies(report.snapshot, module, place);
  return plan;
}

}  // namespace scankit
