// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "builder/fix/distribution.h"
#include "builder/fix/plan.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/knowledge/known_packages.h"
#include "doctor/report/fixes.h"

namespace scankit::fix {
namespace {

// The script that runs when the environment is activated: conda runs every file of activate.d, a venv has one
// script for sh. "" if there is none.
std::string activation_of(const Python& python) {
  struct stat info;
  const std::string file = python.prefix + "/bin/activate";
  if (python.kind == "conda") return python.prefix + "/etc/conda/activate.d/scankit.sh";
  return ::stat(file.c_str(), &info) == 0 ? file : "";
}

using What = decltype(RepairStep::what);

std::string not_in_place(const InstallTarget& place) {
  return place.why.empty()
             ? say("not possible with --target: it changes the environment itself")
             : say("{}: run this as a user with write permission, or use a venv of your own", place.why);
}

Error not_ours_to_do(Message why = "") { return {Errc::Unsupported, std::move(why), ""}; }

}  // namespace

std::string module_file_of(const Snapshot& snapshot, const std::string& module, compile::Flavor flavor) {
  const auto& suffixes = snapshot.python.value.extension_suffixes;
  return flavor == compile::Flavor::Universal || suffixes.empty() ? module_file(module, snapshot.python.value)
                                                                  : module + suffixes.front();
}

InstallBundled bundled(const PlanInput& input, const std::string& module) {
  return {module, module_file_of(input.report.snapshot, module, input.request.flavor)};
}

bool is_taken(const Snapshot& snapshot, const InstallBundled& wanted) {
  return std::ranges::any_of(snapshot.extensions.value, [&](const Extension& extension) {
    return extension.module == wanted.module && extension.selected &&
           path_basename(extension.path) == wanted.file && extension.distribution.starts_with("scankit");
  });
}

namespace {

// "mamba-ssm==2.3.1", not "mamba-ssm".
bool is_pinned(const std::string& requirement) {
  return requirement.find_first_of("=<>!~") != std::string::npos;
}

// Moves a hiding file away. If this user may not move it and the place is another directory, our module
// goes there instead: that directory comes first on the path, so that the file no longer hides anything.
Result<What> shadow_step(const PlanInput& input, const RemoveShadow& shadow) {
  const auto movable = may_move(input.host, shadow.path);
  if (movable || !input.request.place.elsewhere) return What(MoveAway{shadow.path, shadow.module});
  if (!std::holds_alternative<InstallModule>(
          checks::module_fixes(input.report.snapshot, shadow.module, "").front()))
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
  if (!made) return not_ours_to_do(clauses_of({made.error().message, made.error().hint}));
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
  const auto serves = checks::module_fixes(input.report.snapshot, finding.module, "");
  const auto copy = checks::selected_copy(input.report.snapshot, finding.module);
  const bool ours_already = copy && (*copy)->distribution.starts_with("scankit");
  if (!copy || ours_already || !std::holds_alternative<InstallModule>(serves.front())) return std::nullopt;
  return bundled(input, finding.module);
}

std::optional<std::string> torch_too_old(const Snapshot& snapshot) {
  const auto version = Version::parse(snapshot.torch.value.version);
  if (!version || *version >= *Version::parse(knowledge::kOldestTorch)) return std::nullopt;
  return say("scankit's modules work with torch {} and newer, and torch {} is installed",
             knowledge::kOldestTorch, snapshot.torch.value.version);
}

// The CUDA part of the package is not built: our module takes its place, unless a module is there that
// works. A module that came with another release of the package takes that release's arguments, while ours
// takes those of all releases.
void add_module_below(const PlanInput& input, const ModelPackage& model, bool with_package, FixPlan& plan) {
  const std::string module(model.module);
  const Observation* seen = checks::deciding_import(input.report.snapshot, module);
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

// The repair less the packages of which the user has named the release: one after the other would be installed, and
// the first for nothing. If the fault is still there then, the doctor says so after the fix. Empty: nothing is left.
std::optional<Fix> without_wanted(const PlanRequest& request, Fix fix) {
  const auto is_wanted = [&](const std::string& requirement) {
    return std::ranges::any_of(request.packages, [&](const std::string& wanted) {
      return is_pinned(wanted) && installer::required_name(requirement) == installer::required_name(wanted);
    });
  };
  if (auto* packages = std::get_if<InstallPackages>(&fix)) {
    if (std::erase_if(packages->requirements, is_wanted) > 0 && packages->requirements.empty()) return {};
  } else if (const auto* model = std::get_if<InstallModelPackage>(&fix)) {
    if (is_wanted(model->distribution)) return {};
  }
  return fix;
}

}  // namespace

void repair_finding(const PlanInput& input, const Finding& finding, FixPlan& plan) {
  std::vector<std::string> instead;
  const std::string summary = tr(finding.summary);
  const bool named = summary.find(finding.subject) != std::string::npos;
  const std::string what = named ? summary : say("{}: {}", finding.subject, summary);
  for (const Fix& given : preferred(input.report.snapshot, finding)) {
    const std::optional<Fix> left = without_wanted(input.request, given);
    if (!left) return;
    const Fix& fix = *left;
    auto step = step_of(input, fix, finding);
    if (step) {
      add_step(input, {what, std::string(info(finding.cause).slug), finding.module, std::move(*step)}, plan);
      return;
    }
    const std::string command = report::fix_command(fix, input.report.snapshot);
    const std::string todo = command.empty() ? report::fix_sentence(fix) : command;
    instead.push_back(step.error().message.empty() ? todo : say("{} ({})", todo, step.error().message));
  }
  if (auto module = replacement(input, finding)) {
    add_step(input,
             {what, std::string(info(finding.cause).slug), finding.module, std::move(*module), "", 0, true},
             plan);
    return;
  }
  if (const auto too_old = torch_too_old(input.report.snapshot);
      too_old && checks::is_bundled_module(finding.module)) {
    plan.unrepaired.push_back(say("{}; {}", what, *too_old));
    instead = {say("install torch {} or newer, then run scankit fix again", knowledge::kOldestTorch)};
  } else if (!finding.because_of || plan.unrepaired.empty()) {
    plan.unrepaired.push_back(what);
  }
  for (const std::string& todo : instead)
    if (std::ranges::find(plan.advice, todo) == plan.advice.end()) plan.advice.push_back(todo);
}

Result<void> add_wanted_packages(const PlanInput& input, FixPlan& plan) {
  // What another one may require comes first: an installer would take its newest release from the index and build it.
  std::vector<std::string> packages = input.request.packages;
  std::ranges::stable_sort(packages, {}, model_package);
  for (const std::string& requirement : packages) {
    const ModelPackage* model = model_package(requirement);
    if (model == nullptr)
      return Error{Errc::InvalidArgument,
                   message("--package {}: scankit installs mamba-ssm and causal-conv1d", requirement),
                   message("install any other package with your own installer")};
    if (input.request.place.elsewhere)
      return Error{input.request.place.why.empty() ? Errc::InvalidArgument : Errc::PermissionDenied,
                   message("--package {}: {}", requirement, not_in_place(input.request.place)), ""};
    const std::string version = installed_version(input.report.snapshot, requirement);
    if (!version.empty() && !is_pinned(requirement)) {
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

Result<void> add_local_package(const PlanInput& input, FixPlan& plan) {
  const PlanRequest& request = input.request;
  const std::string option = request.wheel ? "--wheel" : "--from-source";
  const std::string& named = request.wheel ? request.wheel->path : request.sources->folder;
  if (request.place.elsewhere)
    return Error{request.place.why.empty() ? Errc::InvalidArgument : Errc::PermissionDenied,
                 message("{} {}: {}", option, named, not_in_place(request.place)), ""};
  SCANKIT_TRY(ChangePackages made, request.wheel
                                       ? change_for(input.host, input.report.snapshot, *request.wheel)
                                       : change_for(input.host, input.report.snapshot, *request.sources));
  plan.steps.push_back({say("{} was requested", named), "", path_basename(named), std::move(made)});
  return {};
}

}  // namespace scankit::fix
