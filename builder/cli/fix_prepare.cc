// SPDX-License-Identifier: Apache-2.0
// What `scankit fix` finds out before it asks: the place, what an interrupted fix left, what may be changed, and
// where each module comes from.
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "builder/cli/fix_stages.h"
#include "builder/compile/build.h"
#include "builder/compile/cache.h"
#include "builder/fix/distribution.h"
#include "builder/fix/transaction.h"
#include "builder/module/bundled.h"
#include "builder/toolchain/toolchain.h"
#include "builder/torch_flavor/torch_flavor.h"
#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/logs/explainer.h"
#include "doctor/probes/imports/observed.h"
#include "doctor/probes/python/python.h"
#include "doctor/probes/snapshot.h"
#include "doctor/report/progress.h"

namespace scankit::cli {

Result<compile::BuildRequest> fix_request(const FixOptions& options) {
  SCANKIT_TRY(compile::BuildRequest request, build_request("", options.arch, options.compilation));
  SCANKIT_CHECK(toolchain::check_request(options.compilation.toolchain));
  request.toolchain.asked = options.compilation.toolchain;
  request.toolchain.progress = tell;
  SCANKIT_TRY(request.flavor, compile::parse_flavor(options.flavor));
  return request;
}

Result<fix::InstallTarget> fix_target(const Host& host, const std::string& python, const std::string& asked) {
  const auto probed = probes::probe_python(host, python);
  if (!probed.present()) return Error{Errc::NotFound, tr(probed.note), ""};
  return fix::choose_place(host, probed.value, asked);
}

Result<Recovery> recover_interrupted(const Host& host, const FixOptions& options, const std::string& base) {
  const fix::StateFolder state(base);
  if (::access(state.root().c_str(), F_OK) != 0) return Recovery::Nothing;
  if (const auto foreign = probes::foreign_to_root(host, state.root())) return fix::foreign_journal(*foreign);
  SCANKIT_TRY(const auto left, fix::interrupted(state));
  if (left.empty()) return Recovery::Nothing;
  print_line(options, say("an earlier fix was interrupted: its changes are undone first"));
  for (const std::string& line : undo_lines(state, left)) print_line(options, line);
  if (options.dry_run) return Recovery::Nothing;
  SCANKIT_TRY(const auto lock, fix::Lock::take(state.root()));
  if (!confirmed(options, false)) return Recovery::Declined;
  std::vector<std::string> lines;
  const auto recovered = fix::recover(state, lines);
  for (const std::string& line : lines) print_line(options, line);
  if (!recovered) return recovered.error();
  return Recovery::Undone;
}

namespace {

// Every file that the plan moves away must be movable, or the fix would fail half-way.
Result<void> check_moves(const FixContext& context, const fix::FixPlan& plan) {
  std::vector<std::string> files;
  for (const fix::InstallBundled& ours : fix::ours_of(plan))
    for (const fix::FileMove& move : fix::hiding_copies(context.report.snapshot, ours, plan.place))
      files.push_back(move.path);
  for (const fix::RepairStep& step : plan.steps)
    if (const auto* away = std::get_if<fix::MoveAway>(&step.what)) files.push_back(away->path);
  for (const std::string& file : files) SCANKIT_CHECK(fix::may_move(context.host, file));
  return {};
}

// The module as it came with scankit, if it has what is asked for. It needs no compiler. A damaged one is told
// and passed over: a build may still do.
std::optional<compile::BuiltModule> shipped_module(const FixContext& context,
                                                   const module::BundledModule& module,
                                                   const compile::BuildRequest& request) {
  if (request.flavor != compile::Flavor::Universal) return std::nullopt;
  auto ready = module::prebuilt_module(module::prebuilt_folder(), module, request.targets,
                                       context.report.snapshot.gpus);
  if (ready && *ready) (*ready)->file = fix::module_file(module.name, context.report.snapshot.python.value);
  if (ready) return *std::move(ready);
  tell(tr(ready.error().message));
  return std::nullopt;
}

}  // namespace

Result<void> check_changes_allowed(const FixContext& context, const fix::FixPlan& plan) {
  SCANKIT_CHECK(fix::check_place(plan.place));
  if (const auto foreign = probes::foreign_code(context.host, context.report.snapshot))
    return fix::foreign_place(*foreign);
  for (const fix::RepairStep& step : plan.steps)
    if (const auto* packages = std::get_if<fix::ChangePackages>(&step.what))
      SCANKIT_CHECK(installer::check_not_diverted(context.host, context.report.snapshot.python.value,
                                                  packages->installer));
  return check_moves(context, plan);
}

namespace {

bool changes_torch(const fix::FixPlan& plan) {
  return std::ranges::any_of(plan.steps, [](const fix::RepairStep& step) {
    const auto* packages = std::get_if<fix::ChangePackages>(&step.what);
    return packages != nullptr &&
           std::ranges::any_of(packages->change.requirements, [](const std::string& wanted) {
             return installer::required_name(wanted) == "torch";
           });
  });
}

// Why no device code is built, or "". Tensors of a GPU reach a module only through a torch with CUDA. Without a GPU here
// PTX is for another machine (an image is often built without one), so a compiler that is here makes it, and none is fetched.
std::string why_no_device_code(const FixContext& context, const fix::FixPlan& plan,
                               const compile::BuildRequest& request) {
  const Snapshot& snapshot = context.report.snapshot;
  const std::string& compiler = request.toolchain.asked;
  const bool wished = request.targets.kind != module::TargetRequest::Kind::Default ||
                      (!compiler.empty() && compiler != "auto");
  if (wished || changes_torch(plan)) return "";
  if (snapshot.torch.present() && snapshot.torch.value.cuda.empty())
    return say("torch {} has no CUDA, so no device code is needed; once it has, run scankit fix again",
               snapshot.torch.value.version);
  if (snapshot.gpus.state != ProbeState::Absent) return "";
  toolchain::ToolchainRequest here = request.toolchain;
  here.may_download = false;
  const auto chosen = toolchain::choose_toolchain(context.host, snapshot, request.targets,
                                                  compile::Cache(request.cache_folder), here);
  if (chosen) return "";
  return say(
      "no GPU found, and no code for another machine's GPU can be built here ({}); use --arch sm_XX to "
      "have it built",
      tr(chosen.error().message));
}

}  // namespace

Result<compile::BuildRequest> request_for_plan(const FixContext& context, const fix::FixPlan& plan,
                                               compile::BuildRequest request) {
  // The plan shows what would be fetched, and nothing is done before it is agreed to.
  request.toolchain.may_download = true;
  if (fix::modules_of(plan).empty()) return request;
  if (request.flavor == compile::Flavor::Torch) {
    const auto environment = torch_flavor::torch_environment(context.host, context.report.snapshot);
    if (!environment) return environment.error();
    request.targets.cuda = context.report.snapshot.torch.value.cuda;
  }
  if (std::string why = why_no_device_code(context, plan, request); !why.empty()) {
    request.targets.kind = module::TargetRequest::Kind::None;
    request.targets.none_since = std::move(why);
  }
  return request;
}

Result<ModuleSources> find_sources(const FixContext& context, const fix::FixPlan& plan,
                                   const compile::BuildRequest& request) {
  const Snapshot& snapshot = context.report.snapshot;
  const compile::Cache cache(request.cache_folder);
  std::optional<toolchain::Toolchain> toolchain;
  ModuleSources found;
  for (const std::string& name : fix::modules_of(plan)) {
    SCANKIT_TRY(const module::BundledModule* module, module::bundled_module(name));
    if (auto shipped = shipped_module(context, *module, request)) {
      found.sources[name] = {true, shipped->targets, shipped->compiler, {}, shipped->notes};
      found.built[name] = *std::move(shipped);
      continue;
    }
    if (!toolchain) {
      SCANKIT_TRY(toolchain, toolchain::choose_toolchain(context.host, snapshot, request.targets, cache,
                                                         request.toolchain));
    }
    found.sources[name] = {false, toolchain->choice.targets, toolchain->said(),
                           toolchain::shown_fetches(context.host, snapshot, cache, *toolchain),
                           toolchain->choice.notes};
  }
  return found;
}

std::vector<std::string> unproven_code(const FixContext& context,
                                       const std::map<std::string, fix::ModuleSource>& sources,
                                       const module::TargetRequest& targets) {
  const auto among = [](const module::Target& target, const std::vector<Gpu>& known) {
    return std::ranges::any_of(
        known, [&](const Gpu& gpu) { return target.ptx || gpu.sm == std::to_string(target.sm); });
  };
  // What came with scankit has code for GPUs that nobody asked about.
  const auto matters = [&](const module::Target& target) {
    return std::ranges::find(targets.list, target) != targets.list.end() ||
           among(target, context.report.snapshot.gpus.value);
  };
  std::vector<module::Target> untested;
  for (const auto& [module, source] : sources)
    for (const module::Target& target : source.targets)
      if (!among(target, context.gpus_here.value) && (!source.prebuilt || matters(target)) &&
          std::ranges::find(untested, target) == untested.end())
        untested.push_back(target);
  if (untested.empty()) return {};
  return {say("{} code (no matching GPU on this machine)", module::names_of(untested, " "))};
}

namespace {

// A snapshot with observed imports.
Snapshot observed_snapshot(const Host& host, const DiagnosisRequest& asked) {
  report::Progress progress;
  probes::SnapshotRequest request;
  request.python = asked.python;
  request.modules = asked.modules;
  request.ask_nvml = true;
  request.audit = asked.modules.empty();  // what a fix leaves broken is to be named, whoever made it
  request.progress = [&](const Message& phase) { progress.now(phase); };
  Snapshot snapshot = probes::take_snapshot(host, request);
  probes::ObserveRequest observe;
  observe.can_be_asked_for = false;  // a fix ends in the import that proves it: nothing to opt into
  if (asked.after_a_fix) observe.timeout = std::chrono::minutes(5);
  observe.running = [&](const Message& what, auto since, auto limit) { progress.now(what, limit, since); };
  snapshot.observations = probes::observe_imports(host, snapshot, observe);
  logs::read_observations(snapshot);
  return snapshot;
}

// Of the extensions of all packages, keeps findings about those that use torch. The others are not scankit's
// business, and the doctor does not mention them unless it is asked to.
void keep_torch_extensions(Report& report) {
  const auto about_torch = [&](const Finding& finding) {
    return std::ranges::any_of(report.snapshot.audit.value.files, [&](const AuditedFile& file) {
      return file.path == finding.subject && file.uses_torch;
    });
  };
  for (Outcome& outcome : report.outcomes) {
    if (outcome.check != "every-extension-loads") continue;
    std::erase_if(outcome.findings, [&](const Finding& finding) { return !about_torch(finding); });
    if (outcome.findings.empty() && outcome.state == CheckState::Found) outcome.state = CheckState::Passed;
    outcome.could_hide_error = false;
  }
}

}  // namespace

Snapshot facts_of_environment(const Host& host, const DiagnosisRequest& request) {
  probes::SnapshotRequest files;
  files.python = request.python;
  files.modules = request.modules;
  return probes::take_snapshot(host, files);
}

Report diagnose_environment(const Host& host, const DiagnosisRequest& request) {
  Report report = checks::diagnose(observed_snapshot(host, request));
  keep_torch_extensions(report);
  checks::decide_root_cause(report);
  return report;
}

}  // namespace scankit::cli
