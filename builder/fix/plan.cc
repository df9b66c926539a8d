// SPDX-License-Identifier: Apache-2.0
#include "builder/fix/plan.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "builder/fix/distribution.h"
#include "builder/fix/packages.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/report/escape.h"
#include "doctor/report/fixes.h"

namespace scankit {
namespace {

constexpr const char* kOldestTorch = "1.13";  // that the modules work with: module_fixes() offers none below

// Exactly this target: a cubin of an older minor version would run as well, but it is not what --arch names.
bool holds_image_for(const Extension& extension, const Target& target) {
  return std::ranges::any_of(extension.images, [&](const DeviceImage& image) {
    return image.sm == target.sm && image.specific == target.specific && (image.kind == "ptx") == target.ptx;
  });
}

// The file name of a module of that flavor. The torch flavor has the first suffix of this Python, which names
// its own ABI and no other.
std::string module_file_of(const Snapshot& snapshot, const std::string& module, Flavor flavor) {
  const auto& suffixes = snapshot.python.value.extension_suffixes;
  return flavor == Flavor::Universal || suffixes.empty() ? module_file(module) : module + suffixes.front();
}

// A selected copy of ours, by its file name, that lacks a target which the user named; else null.
const Extension* our_copy_that_lacks(const Snapshot& snapshot, const PlanRequest& request) {
  for (const Extension& extension : snapshot.extensions.value)
    if (extension.selected &&
        path_basename(extension.path) == module_file_of(snapshot, extension.module, request.flavor) &&
        std::ranges::any_of(request.wanted,
                            [&](const Target& target) { return !holds_image_for(extension, target); }))
      return &extension;
  return nullptr;
}

// Whether import would take this file before `file` in the place. A file in the place itself counts too,
// although import may never take it: two files of one module only leave readers in doubt.
bool hides(const Snapshot& snapshot, const Extension& extension, const InstallTarget& place,
           const std::string& file) {
  if (extension.sys_path_index < 0 || !suffix_fits(snapshot, extension)) return false;
  const auto& path = snapshot.python.value.sys_path;
  const auto site = std::ranges::find(path, place.site, &PathEntry::path) - path.begin();
  // A folder that is on no path yet will be put first, by PYTHONPATH.
  if (site == std::ssize(path)) return false;
  // Which folder is the current one is no property of the environment.
  if (path[static_cast<std::size_t>(extension.sys_path_index)].origin == "cwd") return false;
  if (extension.sys_path_index != site) return extension.sys_path_index < site;
  return path_basename(extension.path) != file;
}

// The script that runs when the environment is activated: conda runs every file of activate.d, a venv has one
// script for sh. "" if there is none.
std::string activation_of(const Python& python) {
  struct stat info;
  const std::string file = python.prefix + "/bin/activate";
  if (python.kind == "conda") return python.prefix + "/etc/conda/activate.d/scankit.sh";
  return ::stat(file.c_str(), &info) == 0 ? file : "";
}

// What a plan is made from.
struct PlanInput {
  const Host& host;
  const Report& report;
  const PlanRequest& request;
};

using What = decltype(RepairStep::what);

std::string not_in_place(const InstallTarget& place) {
  return place.why.empty()
             ? say("not possible with --target: it changes the environment itself")
             : say("{}: run this as a user with write permission, or use a venv of your own", place.why);
}

Error not_ours_to_do(std::string why = "") { return {Errc::Unsupported, std::move(why), ""}; }

InstallBundled bundled(const PlanInput& input, const std::string& module) {
  return {module, module_file_of(input.report.snapshot, module, input.request.flavor)};
}

// Whether import takes this module of ours. The distribution's record decides, since another build may have
// the same file name.
bool is_taken(const Snapshot& snapshot, const InstallBundled& wanted) {
  return std::ranges::any_of(snapshot.extensions.value, [&](const Extension& extension) {
    return extension.module == wanted.module && extension.selected &&
           path_basename(extension.path) == wanted.file && extension.distribution.starts_with("scankit");
  });
}

std::vector<std::string> installed_modules(const Snapshot& snapshot) {
  std::vector<std::string> modules;
  for (const Copy& copy : selected_copies(snapshot)) modules.push_back(copy->module);
  return modules;
}

// Moves a hiding file away. If this user may not move it and the place is another directory, our module
// goes there instead: that directory comes first on the path, so that the file no longer hides anything.
Result<What> shadow_step(const PlanInput& input, const RemoveShadow& shadow) {
  const auto movable = may_move(input.host, shadow.path);
  if (movable || !input.request.place.elsewhere) return What(MoveAway{shadow.path, shadow.module});
  if (!std::holds_alternative<InstallModule>(module_fixes(input.report.snapshot, shadow.module, "").front()))
    return not_ours_to_do(movable.error().message);
  return What(bundled(input, shadow.module));
}

// Only the loader's variables are changed. Any other was set by the user on purpose.
Result<What> variable_step(const PlanInput& input, const SetEnvironment& fix) {
  if (fix.name != "LD_LIBRARY_PATH" && fix.name != "LD_PRELOAD") return not_ours_to_do();
  const bool writable =
      !input.request.place.elsewhere && !input.report.snapshot.python.value.externally_managed;
  return What(
      SetVariable{fix.name, fix.value, writable ? activation_of(input.report.snapshot.python.value) : ""});
}

// The step that makes a fix, or an Error if scankit cannot make it; its message may give a reason.
Result<What> step_of(const PlanInput& input, const Fix& fix, const Finding& finding) {
  if (const auto* module = std::get_if<InstallModule>(&fix)) return What(bundled(input, module->module));
  if (const auto* shadow = std::get_if<RemoveShadow>(&fix)) return shadow_step(input, *shadow);
  if (const auto* variable = std::get_if<SetEnvironment>(&fix)) return variable_step(input, *variable);
  if (const auto* model = std::get_if<InstallModelPackage>(&fix))
    return step_of(input, InstallPackages{{model->distribution}}, finding);
  const auto* packages = std::get_if<InstallPackages>(&fix);
  const auto* rebuild = std::get_if<RebuildPackage>(&fix);
  if (packages == nullptr && rebuild == nullptr) return not_ours_to_do();
  if (input.request.place.elsewhere) return not_ours_to_do(not_in_place(input.request.place));
  auto made = packages != nullptr ? change_for(input.host, input.report.snapshot, *packages)
                                  : change_for(input.host, input.report.snapshot, *rebuild,
                                               finding.cause == Cause::CorruptBinary);
  if (!made) return not_ours_to_do(clauses({made.error().message, made.error().hint}));
  return What(std::move(*made));
}

// The fixes in the order of the check. One exception: without a GPU a torch without CUDA stays, since
// another one is gigabytes, and our module's CPU path works with the torch that is installed.
std::vector<Fix> preferred(const Snapshot& snapshot, const Finding& finding) {
  std::vector<Fix> fixes = finding.fixes;
  const bool gpu = snapshot.gpus.present() && !snapshot.gpus.value.empty();
  if (finding.cause == Cause::CpuOnlyTorch && !gpu)
    (void)std::stable_partition(fixes.begin(), fixes.end(),
                                [](const Fix& fix) { return std::holds_alternative<InstallModule>(fix); });
  return fixes;
}

// A module that scankit carries and that is wrong as a whole is replaced, whatever its check advises. The
// replacement is proven by a call and by the doctor, who must not find the cause again.
std::optional<InstallBundled> replacement(const PlanInput& input, const Finding& finding) {
  constexpr std::array kWhole = {Cause::ImportCrash,          Cause::ImportHang,
                                 Cause::VariantNameMismatch,  Cause::SignatureMismatch,
                                 Cause::PythonAbiTagMismatch, Cause::SilentNoneCausalConv1d};
  if (std::ranges::find(kWhole, finding.cause) == kWhole.end()) return std::nullopt;
  const auto serves = module_fixes(input.report.snapshot, finding.module, "");
  const auto copy = selected_copy(input.report.snapshot, finding.module);
  const bool ours_already = copy && (*copy)->distribution.starts_with("scankit");
  if (!copy || ours_already || !std::holds_alternative<InstallModule>(serves.front())) return std::nullopt;
  return bundled(input, finding.module);
}

std::optional<std::string> torch_too_old(const Snapshot& snapshot) {
  const auto version = Version::parse(snapshot.torch.value.version);
  if (!version || *version >= *Version::parse(kOldestTorch)) return std::nullopt;
  return say("scankit's modules work with torch {} and newer, and torch {} is installed", kOldestTorch,
             snapshot.torch.value.version);
}

// The CUDA part of the package is not built: our module takes its place, unless a module is there that
// works. A module that came with another release of the package takes that release's arguments, while ours
// takes those of all releases.
void add_module_below(const PlanInput& input, const ModelPackage& model, bool with_package, FixPlan& plan) {
  const std::string module(model.module);
  const Observation* seen = deciding_import(input.report.snapshot, module);
  const bool works = seen != nullptr && seen->outcome == "ok";
  const bool of_another_release =
      with_package && !installed_version(input.report.snapshot, std::string(model.distribution)).empty();
  if (works && (!of_another_release || is_taken(input.report.snapshot, bundled(input, module)))) return;
  const std::string needed_by = with_package ? std::string(model.distribution) : "";
  for (RepairStep& step : plan.steps) {
    const auto* ours = std::get_if<InstallBundled>(&step.what);
    if (ours == nullptr || ours->module != module) continue;
    if (with_package && step.cause == "module_not_built")
      step.needed_by = needed_by;  // nothing else is wrong
    return;
  }
  plan.steps.push_back({say("{} needs {}, which its CUDA build would provide", model.distribution, module),
                        "module_not_built", module, bundled(input, module), needed_by});
}

// Drops a change of the same packages as before, and adds the module that a model package needs.
void add_step(const PlanInput& input, RepairStep step, FixPlan& plan) {
  if (auto* packages = std::get_if<ChangePackages>(&step.what)) {
    const auto same = [&](const RepairStep& other) {
      const auto* known = std::get_if<ChangePackages>(&other.what);
      return known != nullptr && known->change.requirements == packages->change.requirements;
    };
    if (std::ranges::any_of(plan.steps, same)) return;
    for (const std::string& requirement : packages->change.requirements)
      if (const ModelPackage* model = model_package(requirement)) add_module_below(input, *model, true, plan);
  }
  plan.steps.push_back(std::move(step));
}

// Takes the first fix that scankit can make. If it can make none, the fixes become advice.
void repair_finding(const PlanInput& input, const Finding& finding, FixPlan& plan) {
  std::vector<std::string> instead;
  const bool named = finding.summary.find(finding.subject) != std::string::npos;
  const std::string what = named ? finding.summary : say("{}: {}", finding.subject, finding.summary);
  for (const Fix& fix : preferred(input.report.snapshot, finding)) {
    auto step = step_of(input, fix, finding);
    if (step) {
      add_step(input, {what, std::string(info(finding.cause).slug), finding.module, std::move(*step)}, plan);
      return;
    }
    const std::string command = fix_command(fix, input.report.snapshot);
    const std::string todo = command.empty() ? fix_sentence(fix) : command;
    instead.push_back(step.error().message.empty() ? todo : say("{} ({})", todo, step.error().message));
  }
  if (auto module = replacement(input, finding)) {
    add_step(input,
             {what, std::string(info(finding.cause).slug), finding.module, std::move(*module), "", 0, true},
             plan);
    return;
  }
  if (const auto too_old = torch_too_old(input.report.snapshot);
      too_old && is_bundled_module(finding.module)) {
    plan.unrepaired.push_back(say("{}; {}", what, *too_old));
    instead = {say("install torch {} or newer, then run scankit fix again", kOldestTorch)};
  } else if (!finding.because_of || plan.unrepaired.empty()) {
    plan.unrepaired.push_back(what);
  }
  for (const std::string& todo : instead)
    if (std::ranges::find(plan.advice, todo) == plan.advice.end()) plan.advice.push_back(todo);
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
             return packages != nullptr && required_name(packages->requirements.front()) == "torch";
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

Result<void> add_wanted_packages(const PlanInput& input, FixPlan& plan) {
  for (const std::string& requirement : input.request.packages) {
    const ModelPackage* model = model_package(requirement);
    if (model == nullptr)
      return Error{Errc::InvalidArgument,
                   say("--package {}: scankit installs mamba-ssm and causal-conv1d", requirement),
                   say("install any other package with your own installer")};
    if (input.request.place.elsewhere)
      return Error{input.request.place.why.empty() ? Errc::InvalidArgument : Errc::PermissionDenied,
                   say("--package {}: {}", requirement, not_in_place(input.request.place)), ""};
    const std::string version = installed_version(input.report.snapshot, requirement);
    const bool pinned = requirement.find_first_of("=<>!~") != std::string::npos;
    if (!version.empty() && !pinned) {
      add_module_below(input, *model, false, plan);
      continue;
    }
    SCANKIT_TRY(ChangePackages made,
                change_packages(input.host, input.report.snapshot, {.requirements = {requirement}}));
    add_step(input,
             {say("{} was requested", requirement), "", std::string(model->distribution), std::move(made)},
             plan);
  }
  return {};
}

// Nothing is broken; these are wishes: an architecture that our module lacks, or the torch flavor.
void add_lacking(const PlanInput& input, FixPlan& plan) {
  if (const Extension* lacking = our_copy_that_lacks(input.report.snapshot, input.request))
    plan.steps.push_back({say("{} has no code for --arch", lacking->path), "", lacking->module,
                          bundled(input, lacking->module)});
  if (input.request.flavor != Flavor::Torch) return;
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
    const Observation* seen = deciding_import(input.report.snapshot, module);
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

bool runs_installer(const FixPlan& plan) {
  return std::ranges::any_of(
      plan.steps, [](const RepairStep& step) { return std::holds_alternative<ChangePackages>(step.what); });
}

Result<FixPlan> plan_fix(const Host& host, const Report& report, const PlanRequest& request) {
  const PlanInput input{host, report, request};
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

}  // namespace scankit
