// SPDX-License-Identifier: Apache-2.0
// `scankit fix`: look (place, recovery, diagnosis, plan), find the compilers, show the plan, ask, build everything,
// then change the environment part by part, and report.
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "builder/cli/fix_stages.h"
#include "builder/fix/plan.h"
#include "builder/fix/transaction.h"
#include "builder/module/bundled.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/probes/python/python.h"
#include "doctor/report/progress.h"

namespace scankit::cli {
namespace {

// Finds a module that an earlier fix put into a directory where this shell does not look.
void look_where_it_was_put(const Host& host, const fix::InstallTarget& place) {
  if (!place.why.empty() && !place.how_to_reach.empty() && host.is_directory(place.site)) put_on_path(place);
}

// The installer of the environment, for the uv project that has to be told of the change. Where the project's uv
// is not on PATH, the plan's advice says what that means.
installer::Installer installer_for(const FixContext& context, fix::FixPlan& plan) {
  if (plan.place.elsewhere) return {};
  const Snapshot& snapshot = context.report.snapshot;
  installer::Installer installer = installer::installer_of(context.host, snapshot);
  const std::string project = installer::uv_project_of(context.host, snapshot.python.value);
  if (installer.project.empty() && !project.empty())
    plan.advice.push_back(say(
        "{} is a uv project, but uv is not on PATH: the next `uv sync` will remove what this fix installs. "
        "Put uv on PATH and run scankit fix again, or run it after each sync",
        project));
  return installer;
}

// Builds the wheel of the user's sources, and plans its installation. Nothing of the environment is changed by it.
Result<void> build_wheel(const FixContext& context, fix::ChangePackages& packages, const std::string& keep,
                         int lock) {
  const std::string python = context.diagnosis.python;
  for (const installer::InstallerCommand& command : packages.build->commands) {
    tell(say("running: {}", installer::shown(command)));
    SCANKIT_CHECK(fix::run_installer(command, lock));
  }
  SCANKIT_TRY(const std::string wheel, fix::built_wheel(packages.build->wheels));
  SCANKIT_TRY(fix::LocalWheel examined, fix::examine_wheel(python, wheel));
  // What stands beside the sources counts; the wheel may contain an older copy of it.
  if (packages.declared) SCANKIT_CHECK(fix::check_declared_name(*packages.declared, examined.name));
  SCANKIT_TRY(examined.path, fix::place_of_wheel(wheel, keep));
  SCANKIT_TRY(fix::ChangePackages ready, fix::change_for(context.host, context.report.snapshot, examined));
  // The last thing that can fail: nothing is left of a build that is refused.
  SCANKIT_TRY(const bool is_new, fix::keep_wheel(wheel, examined.path));
  if (is_new) packages.build->kept = examined.path;
  packages.commands = std::move(ready.commands);
  packages.change = std::move(ready.change);
  packages.before = std::move(ready.before);
  packages.version = std::move(ready.version);
  packages.modules = std::move(ready.modules);
  if (!packages.declared) packages.declared = std::move(ready.declared);
  return {};
}

// Builds the modules of one part into `built`. Modules that came with scankit are there already.
Result<void> build_modules(const FixContext& context, const fix::FixPlan& part, compile::BuildRequest request,
                           std::map<std::string, compile::BuiltModule>& built) {
  for (const std::string& module : fix::modules_of(part)) {
    if (built.contains(module)) continue;
    SCANKIT_TRY(request.module, module::bundled_module(module));
    SCANKIT_TRY(built[module], compile::build_module(context.host, context.report.snapshot, request));
  }
  return {};
}

std::string folder_of_wheels(const fix::InstallTarget& place) {
  return fix::StateFolder(place.base).root() + "/wheels";
}

Result<void> build_wheels(const FixContext& context, fix::FixPlan& part, int lock) {
  for (fix::RepairStep& step : part.steps)
    if (auto* packages = std::get_if<fix::ChangePackages>(&step.what); packages != nullptr && packages->build)
      SCANKIT_CHECK(build_wheel(context, *packages, folder_of_wheels(part.place), lock));
  return {};
}

// A build that fails ends its own part only; the others go on.
void build_parts(const FixContext& context, const compile::BuildRequest& request, int lock,
                 std::vector<fix::PartResult>& parts, std::map<std::string, compile::BuiltModule>& built) {
  const report::IfInterrupted words(
      say("interrupted: the environment was not changed. Compiled code is kept in the cache; run the same "
          "command again to continue"));
  for (fix::PartResult& part : parts) {
    auto made = build_modules(context, part.plan, request, built);
    if (made) made = build_wheels(context, part.plan, lock);
    if (!made) {
      part.failed_at = fix::FailedAt::Preparation;
      part.error = made.error();
    }
  }
}

// A wheel that this run has built and not installed serves nobody.
void forget_wheels(const std::vector<fix::PartResult>& parts) {
  for (const fix::PartResult& part : parts)
    for (const fix::RepairStep& step : part.plan.steps) {
      const auto* packages = std::get_if<fix::ChangePackages>(&step.what);
      if (part.kept() || packages == nullptr || !packages->build || packages->build->kept.empty()) continue;
      fix::forget_wheel(packages->build->kept);
    }
}

// Removes what fixes left that were killed before they changed anything. One that was interrupted in a
// change since recover_interrupted() is not undone here, since the user has not agreed to that.
Result<void> clear_what_is_left(const fix::StateFolder& state) {
  SCANKIT_TRY(const auto left, fix::interrupted(state));
  if (!left.empty())
    return Error{Errc::Conflict, message("another fix of this environment was interrupted in the meantime"),
                 message("run scankit fix again")};
  std::vector<std::string> lines;
  return fix::recover(state, lines);
}

fix::ExecuteRequest execute_request(const FixContext& context, const fix::PlanView& view,
                                    const installer::Installer& installer,
                                    const std::map<std::string, compile::BuiltModule>& built, int lock) {
  fix::ExecuteRequest request;
  request.built = &built;
  request.python = view.python;
  request.project = installer.project;
  request.project_installer = installer;
  request.lock = lock;
  request.diagnose = [&context] { return diagnose_environment(context.host, context.diagnosis); };
  request.facts = [&context] { return facts_of_environment(context.host, context.diagnosis); };
  return request;
}

// That of the wheel is not there yet.
fix::TestRecord tested_before(const std::string& file, const fix::WheelTest* of_wheel,
                              const std::string& python) {
  if (file.empty()) {
    fix::TestRecord test{.file = of_wheel->file, .of_wheel = *of_wheel};
    test.before.why = message("it comes with the wheel");
    return test;
  }
  tell(say("running the test {} before the change", file));
  fix::TestRecord test{.file = file, .before = fix::run_test(python, file)};
  tell(say("before the change it {}", declared::in_words(test.before)));
  return test;
}

// Locks, builds, changes. A part that fails is undone by itself; independent parts stay.
int act(const FixContext& context, const fix::PlanView& view, const compile::BuildRequest& request,
        const installer::Installer& installer, std::map<std::string, compile::BuiltModule> built) {
  std::vector<fix::PartResult> parts;
  for (fix::FixPlan& part : fix::parts_of(*view.plan))
    parts.push_back({std::move(part), fix::FailedAt::Nothing, {}, {}});
  const fix::StateFolder state(view.plan->place.base);
  const bool is_first = ::access(state.root().c_str(), F_OK) != 0;
  // Before minutes of compiling, not after them.
  auto lock = fix::Lock::take(state.root());
  if (!lock) return refuse(context, view, lock.error());
  build_parts(context, request, lock->descriptor(), parts, built);
  const fix::Interruption interruption;
  std::optional<fix::TestRecord> test;
  if (std::ranges::any_of(parts, &fix::PartResult::kept)) {
    if (auto left = clear_what_is_left(state); !left) return refuse(context, view, left.error());
    fix::ExecuteRequest wanted = execute_request(context, view, installer, built, lock->descriptor());
    const fix::WheelTest* of_wheel = fix::wheel_test_of(*view.plan);
    if (!context.test.empty() || of_wheel != nullptr)
      wanted.test = &test.emplace(tested_before(context.test, of_wheel, view.python));
    fix::execute_parts(context.host, state, std::move(wanted), parts);
  } else if (is_first) {
    std::move(*lock).leave_no_trace();
  }
  forget_wheels(parts);
  return tell_results(context, view, parts, test);
}

// Finds the compilers, shows the plan, asks, and acts.
int carry_out(const FixContext& context, fix::FixPlan plan, compile::BuildRequest request) {
  // The test is about everything together, and so it decides about all of it.
  if (!context.test.empty())
    for (fix::RepairStep& step : plan.steps) step.part = 0;
  if (auto allowed = check_changes_allowed(context, plan); !allowed)
    return report_error("fix", allowed.error(), kExitFindings);
  auto completed = request_for_plan(context, plan, std::move(request));
  if (!completed) return report_error("fix", completed.error(), kExitFindings);
  auto found = find_sources(context, plan, *completed);
  if (!found) return report_error("fix", found.error(), kExitFindings);
  const installer::Installer installer = installer_for(context, plan);
  const fix::PlanView view =
      plan_view(context, plan, found->sources, unproven_code(context, found->sources, completed->targets),
                installer.project);
  if (!context.options.json) {
    std::fputs(fix::plan_text(view).c_str(), stdout);
    std::fflush(stdout);  // the plan comes before the work, also in a pipe
  }
  if (context.options.dry_run) return end_fix(context, view, kExitClean, {"planned", "", {}});
  if (!confirmed(context.options, context.undone_before))
    return end_fix(context, view, kExitFindings, {"declined", "", {}});
  return act(context, view, *completed, installer, std::move(found->built));
}

}  // namespace

namespace {

// What --wheel or --from-source names. It is examined before anything else, so that what cannot work is refused at once.
Result<void> examine_local_package(const Host& host, const FixOptions& options, const std::string& python,
                                   fix::PlanRequest& request) {
  if (!options.wheel.empty()) {
    SCANKIT_TRY(request.wheel, fix::examine_wheel(python, options.wheel));
  }
  if (!options.sources.empty()) {
    SCANKIT_TRY(request.sources, fix::examine_sources(host, python, options.sources));
  }
  return {};
}

// The file of --test; else the smoke test that the sources declare, whose path was checked when they were examined.
Result<std::string> test_of(const Host& host, const FixOptions& options, const fix::PlanRequest& wanted) {
  std::string test;
  if (!options.test.empty()) {
    SCANKIT_TRY(test, declared::own_test_file(host, "--test", options.test));
  } else if (wanted.sources && wanted.sources->declared && !wanted.sources->declared->test_file.empty()) {
    SCANKIT_TRY(test, host.realpath(path_join(wanted.sources->folder, wanted.sources->declared->test_file)));
  }
  if (test.empty()) return test;
  // The directory too: its owner can put there what the test imports.
  for (const std::string& path : {test, path_dirname(test)})
    if (const auto foreign = probes::foreign_to_root(host, path))
      return Error{Errc::PermissionDenied,
                   message("the test would run code of user {} as root: {}", foreign->uid, foreign->path),
                   message("run scankit as that user")};
  return test;
}

}  // namespace

int run_fix(const FixOptions& options) {
  const std::unique_ptr<Host> host = make_real_host();
  auto request = fix_request(options);
  if (!request) return report_error("fix", request.error(), kExitUsage);
  const auto python = chosen_python(*host, options.python);
  if (!python)
    return report_error("fix", python.error(), options.python.empty() ? kExitFindings : kExitUsage);
  const auto target = fix_target(*host, *python, options.target);
  if (!target) return report_error("fix", target.error(), kExitFindings);
  // The facts depend on what an interrupted fix left, so that is undone first.
  const auto recovery = recover_interrupted(*host, options, target->base);
  if (!recovery) return report_error("fix", recovery.error(), kExitFindings);
  if (*recovery == Recovery::Declined) return kExitFindings;
  look_where_it_was_put(*host, *target);
  fix::PlanRequest wanted;
  if (const auto fits = examine_local_package(*host, options, *python, wanted); !fits)
    return report_error("fix", fits.error(), kExitFindings);
  auto test = test_of(*host, options, wanted);
  if (!test) return report_error("fix", test.error(), kExitFindings);

  FixContext context{options, *host, {*python, {}}, {}, {}, "", *recovery == Recovery::Undone};
  if (!options.module.empty()) context.diagnosis.modules = {options.module};
  context.report = diagnose_environment(*host, context.diagnosis);
  context.test = *std::move(test);
  context.gpus_here = context.report.snapshot.gpus;
  // --for: the plan is for that machine's GPUs.
  if (!options.for_machine.empty()) {
    const auto known =
        build_for(options.for_machine, options.read_machine, context.report.snapshot, request->targets);
    if (!known) return report_error("fix", known.error(), kExitUsage);
  }
  wanted.modules = context.diagnosis.modules;
  wanted.packages = options.packages;
  wanted.wanted = request->targets.list;
  wanted.place = *target;
  wanted.flavor = request->flavor;
  auto plan = fix::plan_fix(*host, context.report, wanted);
  if (!plan) return report_error("fix", plan.error(), kExitFindings);
  if (plan->kind != fix::FixPlan::Kind::Act) return explain_no_action(context, *plan);
  return carry_out(context, *std::move(plan), *std::move(request));
}

}  // namespace scankit::cli
