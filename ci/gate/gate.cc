// SPDX-License-Identifier: Apache-2.0
#include "ci/gate/gate.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>

#include "builder/fix/transaction.h"
#include "doctor/base/date.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/base/tool_version.h"
#include "doctor/checks/check.h"
#include "doctor/cli/commands.h"
#include "doctor/model/snapshot_variables.h"
#include "doctor/report/doctor_document.h"
#include "doctor/report/progress.h"

// `scankit ci run`: runs doctor, env check and validate as children of this program, reads their answers,
// applies the policy, and prints one report. Children instead of function calls, because a step may hang,
// crash or use up memory, and each has its own time limit.
namespace scankit::gate {
namespace {

using Clock = std::chrono::steady_clock;

// What became of one step: how it ended, or why it was not run. Its answer is read when the report is made.
struct StepRun {
  const PolicyStep* step = nullptr;
  StepCommand command;
  Message not_run;                   // nothing to look at, or left out
  Message no_time;                   // it should have been run, and the budget was used up
  std::optional<StepEnd> end;        // where it was run, now or before
  std::optional<Error> no_answer;    // it ended, and what it said cannot be read
  std::optional<Snapshot> snapshot;  // of doctor
  // Doctor's are found here in its snapshot. What another step answered is English in every report.
  std::vector<Outcome> outcomes;
};

Message question_of(const StepRun& run) { return message("Did {} finish?", run.command.name); }

// It ended without an answer, and with the reason in its last line: wrong usage, or an environment that
// cannot be used.
bool said_why(const StepEnd& end) { return end.status == kExitUsage || end.status == kExitFindings; }

// How the step itself went, as one more outcome, so that every output format reports it and nothing that
// did not run looks green.
Outcome step_outcome(const StepRun& run) {
  Outcome outcome{.check = "step-" + run.command.stem, .question = question_of(run)};
  const auto ends_as = [&](CheckState state, Message why) {
    outcome.state = state;
    outcome.why = std::move(why);
    outcome.could_hide_error = state != CheckState::NotApplicable;
    outcome.left_out = state == CheckState::NotApplicable;
    return outcome;
  };
  const std::string& name = run.command.name;
  if (!run.not_run.empty()) return ends_as(CheckState::NotApplicable, message("{}: {}", name, run.not_run));
  if (!run.no_time.empty()) return ends_as(CheckState::Unknown, run.no_time);
  if (run.no_answer) return ends_as(CheckState::Crashed, message("{}: {}", name, run.no_answer->message));
  const StepEnd& end = *run.end;
  if (end.timed_out)
    return ends_as(CheckState::Unknown, message("{} exceeded its time limit of {} s and was killed", name,
                                                run.command.timeout.count() / 1000));
  if (end.signal != 0)
    return ends_as(CheckState::Crashed,
                   message("{} was killed by signal {} ({})", name, end.signal, ::strsignal(end.signal)));
  if (!end.has_answer()) {
    const CheckState state = said_why(end) ? CheckState::Unknown : CheckState::Crashed;
    return ends_as(state, message("{} exited with status {}: {}", name, end.status, end.last_words));
  }
  return outcome;
}

// The step's own status, before its findings are weighed.
int raw_status(const StepRun& run) {
  if (!run.not_run.empty()) return kExitClean;
  if (!run.no_time.empty()) return kExitInconclusive;
  if (run.no_answer) return kExitInternal;
  if (run.end->timed_out) return kExitInconclusive;
  if (run.end->has_answer()) return kExitClean;
  return said_why(*run.end) ? run.end->status : kExitInternal;
}

// The exit status of a step whose findings fail under the policy.
int found_status(const PolicyStep& step) {
  if (step.name == "env_check" || step.name == "record") return kExitDrift;
  return step.name == "validate" ? kExitValidationFailed : kExitFindings;
}

// One run. run() executes the steps in order, and report() judges what they left.
class Gate {
 public:
  Gate(const GateOptions& options, Policy policy, std::string policy_text)
      : options_(options), policy_(std::move(policy)), policy_text_(std::move(policy_text)) {
    if (const auto budget = parse_duration(options.budget)) deadline_ = Clock::now() + *budget;
    allow_empty_ = options.allow_empty || policy_.allow_empty == true;
  }

  // `kept`: the folder is the user's (--out), so that answers need a key for --resume. Hashing the program
  // and looking at the environment is left out otherwise.
  Result<void> run(const std::string& folder, bool kept) {
    SCANKIT_TRY(const std::string program, own_program());
    std::string hash, environment;
    if (kept) {
      SCANKIT_TRY(hash, sha256_file(program));
      environment = environment_identity(options_.python, {});
    }
    report::Progress progress;
    const std::size_t steps = policy_steps().size() - 1 + policy_.records.size();
    for (const PolicyStep& step : policy_steps())
      for (StepCommand& command : step_commands(step, policy_, options_, program)) {
        StepRun run{.step = &step, .command = std::move(command)};
        run.not_run = nothing_to_do(step, policy_, options_, seen());
        if (run.not_run.empty()) {
          progress.count(runs_.size(), steps);
          progress.now(say("running scankit {}", run.command.name), run.command.timeout);
          run.command.key = kept ? step_key(run.command, policy_, policy_text_, hash, environment) : "";
          SCANKIT_CHECK(run_or_resume(folder, run));
        }
        runs_.push_back(std::move(run));
      }
    return {};
  }

  bool allows_empty() const { return allow_empty_; }

  // The steps' outcomes in order, each after the outcome of the step itself; `ends` remembers where the
  // outcomes of each step end, because the policy changes their findings before the statuses are computed.
  Report report() const {
    Report report;
    report.asked = Asked::Gate;
    if (!policy_.file.empty()) report.compared_with.emplace_back("policy", policy_.file);
    report.snapshot.tool_version = kToolVersion;
    if (seen() != nullptr) report.snapshot = *seen();
    std::vector<std::size_t> ends;  // of each step's outcomes
    for (const StepRun& run : runs_) {
      std::vector<Outcome> outcomes = run.outcomes;
      if (run.command.name == "validate") leave_import_to_doctor(report.outcomes, outcomes);
      report.outcomes.push_back(step_outcome(run));
      for (Outcome& outcome : outcomes) report.outcomes.push_back(std::move(outcome));
      ends.push_back(report.outcomes.size());
    }
    apply_policy(policy_, today_, report);
    std::size_t from = 0;
    for (std::size_t i = 0; i < runs_.size(); from = ends[i], ++i)
      if (runs_[i].not_run.empty())
        report.steps.push_back(
            {runs_[i].command.name,
             status_of(runs_[i], {report.outcomes.begin() + static_cast<std::ptrdiff_t>(from),
                                  report.outcomes.begin() + static_cast<std::ptrdiff_t>(ends[i])}),
             runs_[i].end ? runs_[i].end->seconds : 0});
    return report;
  }

 private:
  // What doctor saw, once it has run; nullptr before.
  const Snapshot* seen() const {
    for (const StepRun& run : runs_)
      if (run.snapshot) return &*run.snapshot;
    return nullptr;
  }

  // The step's status under the policy. A crash outranks a finding, and a finding outranks
  // what is unknown.
  int status_of(const StepRun& run, const std::vector<Outcome>& outcomes) const {
    const int raw = raw_status(run);
    if (raw != kExitClean) return raw;
    bool failed = false, open = false;
    for (const Outcome& outcome : outcomes) {
      if (outcome.state == CheckState::Crashed) return kExitInternal;
      open = open || outcome.could_hide_error;
      for (const Finding& finding : outcome.findings)
        failed = failed || finding.severity() == Severity::Error;
    }
    if (failed) return found_status(*run.step);
    const bool unusable = run.snapshot && run.snapshot->broken_environment;
    if (unusable || (run.snapshot && !allow_empty_ && nothing_to_check(*run.snapshot)))
      return kExitInconclusive;
    return open ? kExitInconclusive : kExitClean;
  }

  Result<void> run_or_resume(const std::string& folder, StepRun& run) {
    // A record is compared again: that takes milliseconds, and the key is of another environment.
    if (options_.resume && run.step->name != "record") run.end = finished_before(folder, run.command);
    if (!run.end) {
      if (!fit_in_budget(run)) return {};
      SCANKIT_TRY(run.end, run_step(folder, run.command));
    }
    if (!run.end->has_answer()) return {};
    if (const auto read = read_answer(answer_file(folder, run.command), run); !read)
      run.no_answer = read.error();
    return {};
  }

  // Shortens the step's time limit to what is left of --budget; false where nothing is left. Doctor gets
  // the budget as an option, so that it can answer in part.
  bool fit_in_budget(StepRun& run) {
    using std::chrono::milliseconds;
    constexpr milliseconds kLeast{50}, kToReport{100};
    milliseconds timeout = run.command.timeout;
    if (deadline_)
      timeout = std::min(timeout, std::chrono::duration_cast<milliseconds>(*deadline_ - Clock::now()));
    if (timeout < kLeast) {
      run.no_time = message("{} was not started: the time limit of --budget ({}) was reached",
                            run.command.name, options_.budget);
      return false;
    }
    // A stored snapshot (--from) is read at once and needs no budget.
    const bool reads_here = std::ranges::find(run.command.argv, "--from") == run.command.argv.end();
    if (deadline_ && run.command.name == "doctor" && reads_here) {
      const milliseconds own = std::max(timeout - kToReport, kLeast / 2);
      run.command.argv.emplace_back("--budget");
      run.command.argv.push_back(std::to_string(own.count()) + "ms");
      timeout += kToReport * 5;  // it answers by itself; this is for one that cannot
    }
    run.command.timeout = timeout;
    return true;
  }

  static Result<void> read_answer(const std::string& path, StepRun& run) {
    if (run.command.name == "doctor") {
      SCANKIT_TRY(run.snapshot, cli::stored_snapshot(path));
      run.outcomes = checks::diagnose(*run.snapshot).outcomes;
      return {};
    }
    SCANKIT_TRY(const std::string text, read_whole_file(path, 256u << 20));
    if (run.command.name == "validate") {
      SCANKIT_TRY(run.outcomes, validate_outcomes(text));
      return {};
    }
    SCANKIT_TRY(run.outcomes, report::outcomes_from_json(text, report::kDriftSchema));
    return {};
  }

  const GateOptions& options_;
  Policy policy_;
  std::string policy_text_;
  std::string today_ = date_utc(seconds_now());  // in UTC: a gate opens and closes everywhere at once
  std::optional<Clock::time_point> deadline_;
  bool allow_empty_ = false;
  std::vector<StepRun> runs_;
};

// The run cannot begin. The report files are written all the same: otherwise those of an earlier run would
// still be there and could say that everything passed.
int refuse(const Error& error, const GateOptions& options, const Message& question, int status) {
  cli::report_error(error);
  Report report;
  report.asked = Asked::Gate;
  report.snapshot.tool_version = kToolVersion;
  report.outcomes.push_back({.check = "policy",
                             .question = question,
                             .state = CheckState::Unknown,
                             .why = error.message,
                             .could_hide_error = true});
  checks::decide_root_cause(report);
  const report::Views views = report::doctor_views(report, status);
  if (options.show.json) std::cout << report::render("json", views) << std::flush;
  (void)cli::write_report_files(options.show.reports, [&](const std::string& format) {
    return report::render(format, views, options.show.verbose);
  });
  tell_job_page(report, status, false);
  return status;
}

// The policy and its text, which is a part of the steps' keys.
Result<Policy> policy_of(const GateOptions& options, std::string& text) {
  std::string path = options.policy;
  if (path.empty()) {
    // Only a file that does not exist means "no policy". One that exists and cannot be read, or a dangling
    // link, is an error: otherwise a wrong permission would switch the policy off.
    if (::faccessat(AT_FDCWD, kPolicyFile, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
      return Policy{};
    path = kPolicyFile;
  }
  SCANKIT_TRY(Policy policy, read_policy(path));
  text = read_whole_file(path).value_or("");
  return policy;
}

}  // namespace

int gate_status(const std::vector<int>& steps) {
  for (const int wanted : {kExitInternal, kExitUsage})
    if (std::ranges::find(steps, wanted) != steps.end()) return wanted;
  for (const int status : steps)
    if (status != kExitClean && status != kExitInconclusive) return status;
  return std::ranges::find(steps, kExitInconclusive) == steps.end() ? kExitClean : kExitInconclusive;
}

int run_gate(const GateOptions& options) {
  std::string text;
  auto policy = policy_of(options, text);
  if (!policy) return refuse(policy.error(), options, message("Can the policy be read?"), kExitUsage);
  std::optional<TemporaryDirectory> temporary;
  std::optional<fix::Lock> lock;
  std::string folder = options.out;
  if (folder.empty()) {
    auto made = TemporaryDirectory::create("scankit-ci");
    if (!made) return refuse(made.error(), options, message("Can the answers be stored?"), kExitInternal);
    temporary.emplace(std::move(*made));
    folder = temporary->path();
  } else {
    auto taken = fix::Lock::take(folder);
    if (!taken) {
      Error error = taken.error();
      if (error.code == Errc::Conflict)
        error = {Errc::Conflict, message("another scankit ci run is writing to {}", folder),
                 message("wait until it ends")};
      return refuse(error, options, message("Can the answers be stored?"), kExitUsage);
    }
    lock.emplace(std::move(*taken));
  }
  Gate gate(options, *std::move(policy), text);
  if (const auto ran = gate.run(folder, !options.out.empty()); !ran)
    return refuse(ran.error(), options, message("Could every step be started?"), kExitInternal);
  const Report report = gate.report();
  std::vector<int> statuses;
  for (const Step& step : report.steps) statuses.push_back(step.status);
  // What no step found: an allowance that ended, where the policy has that fail.
  if (root(report) != nullptr) statuses.push_back(kExitFindings);
  if (report.verdict == Verdict::Empty && !gate.allows_empty()) statuses.push_back(kExitInconclusive);
  const int status = gate_status(statuses);
  const int shown = cli::show(report::doctor_views(report, status), options.show);
  const int told =
      tell_job_page(report, status, !options.show.json && !cli::format_on_stdout(options.show.reports));
  return gate_status({shown, told, status});
}

int run_policy_schema() {
  std::cout << policy_schema() << std::flush;
  return std::cout ? kExitClean : kExitInternal;
}

}  // namespace scankit::gate
