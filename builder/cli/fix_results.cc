// SPDX-License-Identifier: Apache-2.0
// What `scankit fix` says: its question, why it does nothing, and how each part of the plan ended.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "builder/cli/fix_stages.h"
#include "builder/fix/transaction.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/probes/python/python.h"
#include "doctor/report/escape.h"

namespace scankit::cli {

void print_line(const FixOptions& options, const std::string& text) {
  std::fprintf(options.json ? stderr : stdout, "%s\n", report::plain(text, false).c_str());
}

bool confirmed(const FixOptions& options, bool undone_before) {
  if (options.yes) return true;
  const Answer answer = options.json ? Answer::Nobody : ask(say("Proceed? [y/N]"));
  if (answer == Answer::Nobody)
    print_line(options, undone_before ? say("Nothing else was changed. To run the plan: add --yes")
                                      : say("Nothing was changed. To run the plan: add --yes"));
  if (answer == Answer::No)
    print_line(options, undone_before ? say("Nothing else was changed.") : say("Nothing was changed."));
  return answer == Answer::Yes;
}

void put_on_path(const fix::InstallTarget& place) {
  const char* before = std::getenv("PYTHONPATH");
  const std::string old = before == nullptr ? "" : before;
  if ((old + ":").starts_with(place.site + ":")) return;
  (void)::setenv("PYTHONPATH", (place.site + (old.empty() ? "" : ":" + old)).c_str(), 1);
}

fix::PlanView plan_view(const FixContext& context, const fix::FixPlan& plan,
                        const std::map<std::string, fix::ModuleSource>& sources,
                        std::vector<std::string> unproven, const std::string& project) {
  const std::string python = fix::interpreter_of(context.report.snapshot.python.value);
  const std::string& target = context.options.target;
  fix::PlanView view{&plan, &context.report.snapshot, sources};
  view.unproven = std::move(unproven);
  view.proof = "scankit validate --quick --python " + shell_quoted(python);
  if (const auto ours = fix::modules_of(plan); !ours.empty()) view.proof += " --module " + ours.front();
  view.project = project;
  view.python = python;
  view.test = context.test;
  view.restore = "scankit restore --python " + shell_quoted(python) +
                 (target.empty() ? "" : " --target " + shell_quoted(target));
  return view;
}

int end_fix(const FixContext& context, const fix::PlanView& view, int status,
            const fix::FixOutcome& outcome) {
  if (context.options.json) std::fputs(fix::plan_json(view, outcome).c_str(), stdout);
  return status;
}

namespace {

void tell_how_to_reach(const FixOptions& options, const fix::InstallTarget& place) {
  if (place.how_to_reach.empty()) return;
  print_line(options, say("in this shell, first run: {}", place.how_to_reach));
  print_line(options, say("once, for all new shells: {}", place.for_good));
}

// Whether import takes a module from the place of this plan.
bool is_in_place(const Snapshot& snapshot, const fix::InstallTarget& place) {
  return std::ranges::any_of(checks::selected_copies(snapshot), [&](const checks::Copy& copy) {
    return path_dirname(copy->path) == place.site;
  });
}

std::string validate_test_command(const FixContext& context) {
  const std::string python = fix::interpreter_of(context.report.snapshot.python.value);
  return "scankit validate --python " + shell_quoted(python) + " --test " + shell_quoted(context.test);
}

}  // namespace

int explain_no_action(const FixContext& context, const fix::FixPlan& plan) {
  using Kind = fix::FixPlan::Kind;
  const FixOptions& options = context.options;
  const bool nothing = plan.kind == Kind::NothingToDo, cannot = plan.kind == Kind::NotRepairable;
  if (cannot)
    for (const std::string& broken : plan.unrepaired)
      print_line(options, say("scankit cannot repair this: {}", broken));
  else
    print_line(options,
               nothing ? say("nothing to do: {}", plan.why) : say("nothing was changed: {}", plan.why));
  if (nothing && is_in_place(context.report.snapshot, plan.place)) tell_how_to_reach(options, plan.place);
  for (const std::string& line : plan.advice) print_line(options, "  " + say("possible actions: {}", line));
  if (!context.test.empty())
    print_line(options, say("the test was not run; to run it: {}", validate_test_command(context)));
  const fix::PlanView view = plan_view(context, plan, {}, {}, "");
  if (nothing) return end_fix(context, view, kExitClean, {"nothing_to_do", plan.why, {}});
  if (cannot) return end_fix(context, view, kExitFindings, {"not_repairable", plan.why, {}});
  return end_fix(context, view, kExitInconclusive, {"inconclusive", plan.why, {}});
}

int refuse(const FixContext& context, const fix::PlanView& view, const Error& error) {
  const int status = report_error("fix", error, kExitFindings);
  report_error("fix",
               {Errc::Io, message("nothing was changed: the environment is in its previous state"), ""},
               status);
  return end_fix(context, view, status, {"failed", tr(error.message), {}});
}

namespace {

void tell_kept_step(const FixOptions& options, const fix::RepairStep& step,
                    const std::vector<fix::Untested>& untested) {
  if (const auto* away = std::get_if<fix::MoveAway>(&step.what))
    print_line(options, say("repaired: {} no longer hides {}", away->path, away->module));
  const auto* packages = std::get_if<fix::ChangePackages>(&step.what);
  if (packages != nullptr && !packages->local.empty())
    print_line(options,
               packages->modules.empty() || !untested.empty()
                   ? say("installed: {}", packages->local)
                   : say("installed: {}; `{}` works", packages->local, fix::import_of(packages->modules)));
  else if (packages != nullptr && std::ranges::any_of(packages->statements, [&](const std::string& one) {
             return std::ranges::find(untested, one, &fix::Untested::statement) != untested.end();
           }))
    print_line(options, say("installed: {}", join(packages->change.requirements)));
  else if (packages != nullptr)
    print_line(options, say("repaired: {}", packages->statements.empty() ? join(packages->change.requirements)
                                                                         : join(packages->statements)));
  if (const auto* variable = std::get_if<fix::SetVariable>(&step.what))
    print_line(options,
               variable->file.empty()
                   ? say("it works where scankit ran before, as observed: {}", fix::shell_line(*variable))
                   : say("repaired in every new shell that activates the environment: {}", variable->name));
}

void tell_kept(const FixOptions& options, const fix::PartResult& part) {
  for (const std::string& module : fix::modules_of(part.plan))
    print_line(options, say("repaired: `import {}` works and its results are correct", module));
  for (const fix::RepairStep& step : part.plan.steps) tell_kept_step(options, step, part.result.untested);
  for (const std::string& note : part.result.notes) print_line(options, say("note: {}", note));
}

// What a failed part leaves: the old state, or with FailedAt::Undoing a half-undone one.
void tell_undone(const FixOptions& options, const fix::PartResult& part) {
  for (const fix::RepairStep& step : part.plan.steps)
    print_line(options, part.failed_at == fix::FailedAt::Undoing
                            ? say("still wrong, and only partly undone: {}", step.why)
                            : say("still wrong, and unchanged: {}", step.why));
}

// What the doctor, asked once more about everything that it was asked before, still calls an error.
std::vector<std::string> still_broken(const FixContext& context, const fix::InstallTarget& place) {
  if (!place.how_to_reach.empty()) put_on_path(place);
  DiagnosisRequest again = context.diagnosis;
  again.after_a_fix = true;
  const Report now = diagnose_environment(context.host, again);
  std::vector<std::string> lines;
  for (const Finding& finding : now.findings) {
    if (finding.severity() != Severity::Error || finding.because_of ||
        !fix::concerns(finding, context.diagnosis.modules))
      continue;
    const std::string summary = tr(finding.summary);
    const bool named = summary.find(finding.subject) != std::string::npos;
    lines.push_back(named ? summary : say("{}: {}", finding.subject, summary));
  }
  return lines;
}

void tell_what_is_left(const FixOptions& options, const fix::PlanView& view) {
  tell_how_to_reach(options, view.plan->place);
  for (const std::string& part : view.unproven) print_line(options, say("not tested: {}", part));
  if (!view.unproven.empty()) print_line(options, say("to test it on that GPU: {}", view.proof));
  for (const std::string& todo : view.plan->advice) print_line(options, say("to do by hand: {}", todo));
}

int status_of(const fix::PartResult& part) {
  return part.failed_at == fix::FailedAt::Verification ? kExitValidationFailed : kExitBuildFailed;
}

}  // namespace

int tell_results(const FixContext& context, const fix::PlanView& view,
                 const std::vector<fix::PartResult>& parts, const std::optional<fix::TestRecord>& test) {
  const FixOptions& options = context.options;
  const bool any_kept = std::ranges::any_of(parts, &fix::PartResult::kept);
  fix::FixOutcome outcome{any_kept ? "repaired" : "failed", "", {}};
  outcome.test = test;
  int status = kExitClean;
  for (const fix::PartResult& part : parts) {
    const auto number = static_cast<unsigned>(outcome.kept.size());
    outcome.kept.push_back(part.kept());
    if (part.kept()) {
      tell_kept(options, part);
      for (const fix::Untested& one : part.result.untested) outcome.untested.emplace_back(number, one);
      outcome.notes.insert(outcome.notes.end(), part.result.notes.begin(), part.result.notes.end());
      continue;
    }
    const int failed = report_error("fix", part.error, status_of(part));
    if (status == kExitClean) {
      status = failed;
      outcome.message = tr(part.error.message);
    }
    if (any_kept) tell_undone(options, part);
  }
  if (any_kept && status == kExitClean) {
    outcome.still_broken = still_broken(context, view.plan->place);
    for (const std::string& line : outcome.still_broken) print_line(options, say("still broken: {}", line));
    if (!outcome.still_broken.empty()) status = kExitFindings;
  }
  if (any_kept && test && test->after)
    print_line(options, say("the test {} {}; before the change it {}", test->file,
                            declared::in_words(*test->after), declared::in_words(test->before)));
  if (any_kept) tell_what_is_left(options, view);
  if (any_kept && status != kExitClean) outcome.state = "partly_repaired";
  const bool old_state = std::ranges::none_of(
      parts, [](const fix::PartResult& part) { return part.failed_at == fix::FailedAt::Undoing; });
  if (!any_kept && old_state)
    report_error("fix",
                 {Errc::Io, message("nothing was changed: the environment is in its previous state"), ""},
                 status);
  const int signal = status == kExitClean ? 0 : fix::Interruption::signal();
  return end_fix(context, view, signal != 0 ? 128 + signal : status, outcome);
}

}  // namespace scankit::cli
