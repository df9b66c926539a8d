// SPDX-License-Identifier: Apache-2.0
#include "builder/fix/plan.h"

#include <algorithm>
#include <numeric>

#include "builder/installer/installer.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/report/fixes.h"

namespace scankit::fix {
namespace {

// Exactly this target: a cubin of an older minor version would run as well, but it is not what --arch names.
bool holds_image_for(const Extension& extension, const module::Target& target) {
  return std::ranges::any_of(extension.images, [&](const DeviceImage& image) {
    return image.sm == target.sm && image.specific == target.specific && (image.kind == "ptx") == target.ptx;
  });
}

// A selected copy of ours, by its file name, that lacks a target which the user named; else null.
const Extension* our_copy_that_lacks(const Snapshot& snapshot, const PlanRequest& request) {
  for (const Extension& extension : snapshot.extensions.value)
    if (extension.selected &&
        path_basename(extension.path) == module_file_of(snapshot, extension.module, request.flavor) &&
        std::ranges::any_of(request.wanted, [&](const module::Target& target) {
          return !holds_image_for(extension, target);
        }))
      return &extension;
  return nullptr;
}

// Whether import would take this file before `file` in the place. A file in the place itself counts too,
// although import may never take it: two files of one module only leave readers in doubt.
bool hides(const Snapshot& snapshot, const Extension& extension, const InstallTarget& place,
           const std::string& file) {
  if (extension.sys_path_index < 0 || !checks::suffix_fits(snapshot, extension)) return false;
  const auto& path = snapshot.python.value.sys_path;
  const auto site = std::ranges::find(path, place.site, &PathEntry::path) - path.begin();
  // A folder that is on no path yet will be put first, by PYTHONPATH.
  if (site == std::ssize(path)) return false;
  // Which folder is the current one is no property of the environment.
  if (path[static_cast<std::size_t>(extension.sys_path_index)].origin == "cwd") return false;
  if (extension.sys_path_index != site) return extension.sys_path_index < site;
  return path_basename(extension.path) != file;
}

std::vector<std::string> installed_modules(const Snapshot& snapshot) {
  std::vector<std::string> modules;
  for (const checks::Copy& copy : checks::selected_copies(snapshot)) modules.push_back(copy->module);
  return modules;
}

// Whether an earlier step settles the finding. A symptom goes with its cause; a module of ours settles
// whatever is wrong with the file that it replaces; a file that is moved away takes its own faults along.
bool settled(const std::vector<RepairStep>& steps, const Finding& finding) {
  return std::ranges::any_of(steps, [&](const RepairStep& step) {
    if (step.about != finding.module) return false;
    const auto* away = std::get_if<MoveAway>(&step.what);
    if (away != nullptr && away->path == finding.subject) return true;
    const bool same_cause = finding.because_of && step.cause == info(*finding.because_of).slug;
    return same_cause || std::holds_alternative<InstallBundled>(step.what);
  });
}

// Whether the doctor offers torch itself as a package for the user's installer.
bool torch_can_be_installed(const Report& report) {
  return std::ranges::any_of(report.findings, [&](const Finding& finding) {
    return finding.severity() == Severity::Error && std::ranges::any_of(finding.fixes, [](const Fix& fix) {
             const auto* packages = std::get_if<InstallPackages>(&fix);
             return packages != nullptr &&
                    installer::required_name(packages->requirements.front()) == "torch";
           });
  });
}

FixPlan without_torch(const PlanInput& input) {
  FixPlan plan;
  plan.place = input.request.place;
  plan.kind = FixPlan::Kind::NotRepairable;
  plan.why =
      say("torch is not installed ({}), and the modules need it", tr(input.report.snapshot.torch.note));
  plan.unrepaired = {plan.why};
  plan.advice = {say("install torch, then run scankit fix again")};
  return plan;
}

// Nothing is broken; these are wishes: an architecture that our module lacks, or the torch flavor.
void add_lacking(const PlanInput& input, FixPlan& plan) {
  if (const Extension* lacking = our_copy_that_lacks(input.report.snapshot, input.request))
    plan.steps.push_back({say("{} has no code for --arch", lacking->path), "", lacking->module,
                          bundled(input, lacking->module)});
  if (input.request.flavor != compile::Flavor::Torch) return;
  // Asked for by name: also in the place of a module that works.
  for (const std::string& module :
       input.request.modules.empty() ? installed_modules(input.report.snapshot) : input.request.modules)
    if (!is_taken(input.report.snapshot, bundled(input, module)))
      plan.steps.push_back(
          {say("{} with the torch flavor was requested", module), "", module, bundled(input, module)});
}

// The modules whose import must have been seen to work; all of them if nothing was imported.
std::vector<std::string> of_interest(const PlanInput& input) {
  if (!input.request.modules.empty()) return input.request.modules;
  const auto modules = installed_modules(input.report.snapshot);
  const bool doubt =
      input.report.verdict == Verdict::Unknown && !input.report.snapshot.observations.present();
  return modules.empty() && doubt ? input.report.snapshot.modules : modules;
}

// Says why there are no steps. A module whose import was not seen to work makes the plan Inconclusive.
void say_why_nothing(const PlanInput& input, FixPlan& plan) {
  if (!plan.unrepaired.empty()) {
    plan.kind = FixPlan::Kind::NotRepairable;
    plan.why = plan.unrepaired.front();
    return;
  }
  std::vector<std::string> works, unseen;
  for (const std::string& module : of_interest(input)) {
    const Observation* seen = checks::deciding_import(input.report.snapshot, module);
    if (seen != nullptr && seen->outcome == "ok")
      works.push_back(say("`import {}` works, from {}", module, seen->file));
    else
      unseen.push_back(module);
  }
  if (unseen.empty()) {
    plan.why = works.empty() ? say("nothing is broken, and no installed package needs a missing module")
                             : clauses(works);
    return;
  }
  plan.kind = FixPlan::Kind::Inconclusive;
  const Message& note = input.report.snapshot.observations.note;
  const std::string names = join(unseen);
  plan.why = note.empty() ? say("no fault was found in {}, but its import was not observed to work", names)
                          : say("no fault was found in {}, but its import was not observed to work ({})",
                                names, tr(note));
}

}  // namespace

std::vector<FileMove> hiding_copies(const Snapshot& snapshot, const InstallBundled& ours,
                                    const InstallTarget& place) {
  std::vector<FileMove> moves;
  for (const Extension& extension : snapshot.extensions.value)
    if (extension.module == ours.module && hides(snapshot, extension, place, ours.file))
      moves.insert(moves.begin(), {extension.path, extension.distribution});
  return moves;
}

bool concerns(const Finding& finding, const std::vector<std::string>& modules) {
  const bool below = finding.module == "torch" || finding.module == "python" || finding.module.empty();
  return modules.empty() || below || std::ranges::find(modules, finding.module) != modules.end();
}

std::string shell_line(const SetVariable& variable) {
  std::string line(variable.value.empty() ? "unset " : "export ");
  line.append(variable.name);
  if (!variable.value.empty()) line.append("=").append(shell_quoted(variable.value));
  return line;
}

std::vector<InstallBundled> ours_of(const FixPlan& plan) {
  std::vector<InstallBundled> all;
  for (const RepairStep& step : plan.steps)
    if (const auto* ours = std::get_if<InstallBundled>(&step.what)) all.push_back(*ours);
  return all;
}

std::vector<std::string> modules_of(const FixPlan& plan) {
  std::vector<std::string> modules;
  for (const InstallBundled& ours : ours_of(plan)) modules.push_back(ours.module);
  return modules;
}

const WheelTest* wheel_test_of(const FixPlan& plan) {
  for (const RepairStep& step : plan.steps)
    if (const auto* packages = std::get_if<ChangePackages>(&step.what); packages != nullptr && packages->test)
      return &*packages->test;
  return nullptr;
}

bool runs_installer(const FixPlan& plan) {
  return std::ranges::any_of(
      plan.steps, [](const RepairStep& step) { return std::holds_alternative<ChangePackages>(step.what); });
}

namespace {

// The user knows what is to be installed. Repairs of other findings would be a surprise, and one of the same module
// would undo the wish.
Result<FixPlan> plan_of_local_package(const PlanInput& input) {
  FixPlan plan;
  plan.place = input.request.place;
  SCANKIT_CHECK(add_local_package(input, plan));
  divide_into_parts(plan.steps);
  plan.kind = FixPlan::Kind::Act;
  return plan;
}

}  // namespace

Result<FixPlan> plan_fix(const Host& host, const Report& report, const PlanRequest& request) {
  const PlanInput input{host, report, request};
  if (request.wheel || request.sources) return plan_of_local_package(input);
  if (report.snapshot.torch.state == ProbeState::Absent && !torch_can_be_installed(report))
    return without_torch(input);
  FixPlan plan;
  plan.place = request.place;
  // A cause comes before its symptoms, so that the steps made so far may settle a finding.
  for (const Finding& finding : report.findings)
    if (finding.severity() == Severity::Error && concerns(finding, request.modules) &&
        !settled(plan.steps, finding))
      repair_finding(input, finding, plan);
  SCANKIT_CHECK(add_wanted_packages(input, plan));
  if (plan.steps.empty() && plan.unrepaired.empty()) add_lacking(input, plan);
  divide_into_parts(plan.steps);
  if (plan.steps.empty())
    say_why_nothing(input, plan);
  else
    plan.kind = FixPlan::Kind::Act;
  return plan;
}

namespace {

// The names that a step is about. Two steps with a common name depend on each other.
std::vector<std::string> names_in_step(const RepairStep& step) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (!name.empty()) names.push_back(installer::required_name(name));
  };
  add(step.about);
  add(step.needed_by);
  if (const auto* ours = std::get_if<InstallBundled>(&step.what)) add(ours->module);
  if (const auto* away = std::get_if<MoveAway>(&step.what)) add(away->module);
  if (const auto* packages = std::get_if<ChangePackages>(&step.what))
    for (const std::string& requirement : packages->change.requirements) add(requirement);
  return names;
}

bool share_a_name(const RepairStep& one, const RepairStep& other) {
  const auto names = names_in_step(other);
  return std::ranges::any_of(names_in_step(one), [&](const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  });
}

// Sets of steps, each named by its first (a union-find without ranks: plans are short).
class Sets {
 public:
  explicit Sets(std::size_t count) : first_(count) { std::iota(first_.begin(), first_.end(), 0u); }
  unsigned of(std::size_t step) const {
    while (first_[step] != step) step = first_[step];
    return static_cast<unsigned>(step);
  }
  void join(std::size_t one, std::size_t other) {
    const unsigned low = std::min(of(one), of(other));
    first_[of(one)] = first_[of(other)] = low;
  }

 private:
  std::vector<unsigned> first_;
};

// In the order of execution.
enum class Level { BelowAll, Modules, Packages };

Level level_of(const RepairStep& step) {
  const auto* packages = std::get_if<ChangePackages>(&step.what);
  if (std::holds_alternative<SetVariable>(step.what) || step.about == "torch" || step.about == "python")
    return Level::BelowAll;
  if (packages == nullptr) return Level::Modules;
  const auto& wanted = packages->change.requirements;
  const bool torch = std::ranges::any_of(wanted, [](const std::string& requirement) {
    return installer::required_name(requirement) == "torch";
  });
  return torch ? Level::BelowAll : Level::Packages;
}

}  // namespace

void divide_into_parts(std::vector<RepairStep>& steps) {
  Sets sets(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (share_a_name(steps[i], steps[j])) sets.join(i, j);
  // One step below everything takes its whole set down there; otherwise a package takes its set up.
  const auto level_of_set = [&](unsigned set) {
    Level highest = Level::Modules;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (sets.of(i) != set) continue;
      if (level_of(steps[i]) == Level::BelowAll) return Level::BelowAll;
      highest = std::max(highest, level_of(steps[i]));
    }
    return highest;
  };
  std::vector<unsigned> order;
  for (unsigned i = 0; i < steps.size(); ++i)
    if (sets.of(i) == i) order.push_back(i);
  std::ranges::stable_sort(order, {}, level_of_set);
  for (std::size_t i = 0; i < steps.size(); ++i)
    steps[i].part = static_cast<unsigned>(std::ranges::find(order, sets.of(i)) - order.begin());
  std::ranges::stable_sort(steps, {}, [](const RepairStep& step) {
    return std::pair(step.part, std::holds_alternative<ChangePackages>(step.what) ? 0 : 1);
  });
}

std::vector<FixPlan> parts_of(const FixPlan& plan) {
  std::vector<FixPlan> parts;
  for (const RepairStep& step : plan.steps) {
    if (parts.empty() || parts.back().steps.back().part != step.part) {
      parts.emplace_back();
      parts.back().kind = plan.kind;
      parts.back().place = plan.place;
    }
    parts.back().steps.push_back(step);
  }
  return parts;
}

}  // namespace scankit::fix
