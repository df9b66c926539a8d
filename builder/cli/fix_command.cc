// SPDX-License-Identifier: Apache-2.0
// `scankit fix`, in the order of FixRun::run(): look (place, recovery, diagnosis, plan), find the compilers,
// show the plan, ask, build everything, then change the environment part by part, and report. Up to act()
// nothing in the environment changes, except that an interrupted fix is undone.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "builder/cli/commands.h"
#include "builder/compile/cache.h"
#include "builder/fix/diagnosis.h"
#include "builder/fix/execute.h"
#include "builder/fix/interruption.h"
#include "builder/fix/lock.h"
#include "builder/fix/parts.h"
#include "builder/fix/plan_text.h"
#include "builder/fix/transaction.h"
#include "builder/module/bundled.h"
#include "builder/module/prebuilt.h"
#include "builder/toolchain/choose_toolchain.h"
#include "builder/torch_flavor/environment.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/probes/python/python.h"
#include "doctor/probes/python/python_choice.h"
#include "doctor/report/escape.h"
#include "doctor/report/progress.h"

namespace scankit {
namespace {

// One run. A step that returns a status has ended the run with it; nullopt means go on.
class FixRun {
 public:
  explicit FixRun(const FixOptions& options) : options_(options), host_(make_real_host()) {}

  int run() {
    if (auto status = look()) return *status;
    if (plan_.kind != FixPlan::Kind::Act) return explain_no_action();
    if (auto status = find_toolchain()) return *status;
    find_project();
    say_what_is_unproven();
    if (!options_.json) {
      std::fputs(plan_text(view()).c_str(), stdout);
      std::fflush(stdout);  // the plan comes before the work, also in a pipe
    }
    if (options_.dry_run) return end(kExitClean, {"planned", "", {}});
    if (!confirmed()) return end(kExitFindings, {"declined", "", {}});
    return act();
  }

 private:
  // Where to install, what is wrong, and what to do about it. An interrupted fix is recovered first, since
  // the facts depend on it.
  std::optional<int> look() {
    auto request = build_request("", options_.arch, options_.compilation);
    if (!request) return report_error("fix", request.error(), kExitUsage);
    request_ = std::move(*request);
    if (auto known = check_request(options_.compilation.toolchain); !known)
      return report_error("fix", known.error(), kExitUsage);
    request_.toolchain.asked = options_.compilation.toolchain;
    request_.toolchain.progress = tell;
    const auto flavor = parse_flavor(options_.flavor);
    if (!flavor) return report_error("fix", flavor.error(), kExitUsage);
    request_.flavor = *flavor;
    const auto python = chosen_python(*host_, options_.python);
    if (!python)
      return report_error("fix", python.error(), options_.python.empty() ? kExitFindings : kExitUsage);
    const auto probed = probe_python(*host_, *python);
    if (!probed.present()) return report_error("fix", {Errc::NotFound, probed.note, ""}, kExitFindings);
    auto place = choose_place(*host_, probed.value, options_.target);
    if (!place) return report_error("fix", place.error(), kExitFindings);
    if (auto status = recover_interrupted(place->base)) return status;
    look_where_it_was_put(*place);
    diagnosis_ = {*python, modules()};
    report_ = diagnose_environment(*host_, diagnosis_);
    if (auto status = look_at_other_machine()) return status;
    PlanRequest asked{modules(), options_.packages, request_.targets.list, *place, request_.flavor};
    auto plan = plan_fix(*host_, report_, asked);
    if (!plan) return report_error("fix", plan.error(), kExitFindings);
    plan_ = std::move(*plan);
    return std::nullopt;
  }

  std::vector<std::string> modules() const {
    return options_.module.empty() ? std::vector<std::string>() : std::vector<std::string>{options_.module};
  }

  // Finds a module that an earlier fix put into a directory where this shell does not look.
  void look_where_it_was_put(const InstallTarget& place) {
    if (place.why.empty() || place.how_to_reach.empty() || !host_->is_directory(place.site)) return;
    put_on_path(place);
  }

  // Whether import takes a module from the place of this plan.
  bool is_in_place() const {
    return std::ranges::any_of(selected_copies(report_.snapshot), [&](const Copy& copy) {
      return path_dirname(copy->path) == plan_.place.site;
    });
  }

  // Puts the place on PYTHONPATH for this process and for what it starts.
  static void put_on_path(const InstallTarget& place) {
    const char* before = std::getenv("PYTHONPATH");
    const std::string old = before == nullptr ? "" : before;
    if ((old + ":").starts_with(place.site + ":")) return;
    (void)::setenv("PYTHONPATH", (place.site + (old.empty() ? "" : ":" + old)).c_str(), 1);
  }

  // --for: the plan is for that machine's GPUs. `here_` keeps ours, to say what cannot be tested here.
  std::optional<int> look_at_other_machine() {
    if (options_.for_machine.empty()) return std::nullopt;
    here_ = report_.snapshot.gpus;
    const auto known =
        build_for(options_.for_machine, options_.read_machine, report_.snapshot, request_.targets);
    if (!known) return report_error("fix", known.error(), kExitUsage);
    return std::nullopt;
  }

  // Undoes what a killed fix left, after asking. Has the lock only meanwhile: the plan comes first, and act()
  // takes it again. With --dry-run it only says what would be undone.
  std::optional<int> recover_interrupted(const std::string& base) {
    const StateFolder state(base);
    if (::access(state.root().c_str(), F_OK) != 0) return std::nullopt;
    if (const auto foreign = foreign_to_root(*host_, state.root()))
      return report_error("fix", foreign_journal(*foreign), kExitFindings);
    const auto left = interrupted(state);
    if (!left) return report_error("fix", left.error(), kExitFindings);
    if (left->empty()) return std::nullopt;
    print(say("an earlier fix was interrupted: before anything else, what it did is undone"));
    for (const std::string& line : undo_lines(state, *left)) print(line);
    if (options_.dry_run) return std::nullopt;
    auto lock = Lock::take(state.root());
    if (!lock) return report_error("fix", lock.error(), kExitFindings);
    if (!confirmed()) return kExitFindings;
    std::vector<std::string> lines;
    const auto recovered = recover(state, lines);
    for (const std::string& line : lines) print(line);
    if (!recovered) return report_error("fix", recovered.error(), kExitFindings);
    undone_before_ = true;
    return std::nullopt;
  }

  int explain_no_action() const {
    using Kind = FixPlan::Kind;
    const bool nothing = plan_.kind == Kind::NothingToDo, cannot = plan_.kind == Kind::NotRepairable;
    if (cannot)
      for (const std::string& broken : plan_.unrepaired) print(say("scankit cannot repair this: {}", broken));
    else
      print(nothing ? say("nothing to do: {}", plan_.why) : say("nothing was changed: {}", plan_.why));
    if (nothing && is_in_place()) tell_how_to_reach();
    for (const std::string& line : plan_.advice) print("  " + say("you can: {}", line));
    return end(nothing  ? kExitClean
               : cannot ? kExitFindings
                        : kExitInconclusive,
               {nothing  ? "nothing_to_do"
                : cannot ? "not_repairable"
                         : "inconclusive",
                plan_.why,
                {}});
  }

  // Before anything is promised: is there a compiler, may we write?
  std::optional<int> find_toolchain() {
    if (auto good = check_place(plan_.place); !good) return report_error("fix", good.error(), kExitFindings);
    if (const auto foreign = foreign_code(*host_, report_.snapshot))
      return report_error("fix", foreign_place(*foreign), kExitFindings);
    if (auto movable = check_moves(); !movable) return report_error("fix", movable.error(), kExitFindings);
    // The plan shows what would be fetched, and nothing is done before it is agreed to.
    request_.toolchain.may_download = true;
    if (request_.flavor == Flavor::Torch && !modules_of(plan_).empty()) {
      const auto environment = torch_environment(*host_, report_.snapshot);
      if (!environment) return report_error("fix", environment.error(), kExitFindings);
      request_.targets.cuda = report_.snapshot.torch.value.cuda;
    }
    for (const std::string& module : modules_of(plan_))
      if (auto status = find_source(module)) return status;
    return std::nullopt;
  }

  // Every file that the plan moves away must be movable, or the fix would fail half-way.
  Result<void> check_moves() const {
    std::vector<std::string> files;
    for (const InstallBundled& ours : ours_of(plan_))
      for (const FileMove& move : hiding_copies(report_.snapshot, ours, plan_.place))
        files.push_back(move.path);
    for (const RepairStep& step : plan_.steps)
      if (const auto* away = std::get_if<MoveAway>(&step.what)) files.push_back(away->path);
    for (const std::string& file : files) SCANKIT_CHECK(may_move(*host_, file));
    return {};
  }

  // A module that came with scankit, or else a compiler. All modules to build share one toolchain.
  std::optional<int> find_source(const std::string& module) {
    const auto shipped = bundled_module(module);
    if (!shipped) return report_error("fix", shipped.error(), kExitFindings);
    ModuleSource& source = sources_[module];
    // What came with scankit needs no compiler. Damaged, it is told and passed over: a build may still do.
    Result<std::optional<BuiltModule>> ready = std::optional<BuiltModule>();
    if (request_.flavor == Flavor::Universal)
      ready = prebuilt_module(prebuilt_folder(), **shipped, request_.targets, report_.snapshot.gpus);
    if (!ready) tell(retold(ready.error().message));
    if (ready && *ready) {
      source = {true, (*ready)->targets, (*ready)->compiler, {}, (*ready)->notes};
      built_[module] = std::move(**ready);
      return std::nullopt;
    }
    const Cache cache(request_.cache_folder);
    if (!toolchain_) {
      auto chosen = choose_toolchain(*host_, report_.snapshot, request_.targets, cache, request_.toolchain);
      if (!chosen) return report_error("fix", chosen.error(), kExitFindings);
      toolchain_ = std::move(*chosen);
    }
    source = {false, toolchain_->choice.targets, toolchain_->said(),
              shown_fetches(*host_, report_.snapshot, cache, *toolchain_), toolchain_->choice.notes};
    return std::nullopt;
  }

  void find_project() {
    if (plan_.place.elsewhere) return;
    installer_ = installer_of(*host_, report_.snapshot);
    const std::string project = uv_project_of(*host_, report_.snapshot.python.value);
    if (installer_.project.empty() && !project.empty())
      plan_.advice.push_back(say(
          "{} is a uv project, but uv is not on PATH: the next `uv sync` will remove what this fix installs. "
          "Put uv on PATH and run scankit fix again, or run it after each sync",
          project));
  }

  // The import and the results on the CPU are tested here in any case. What cannot be tested is code for GPUs
  // that this machine does not have.
  void say_what_is_unproven() {
    const auto& gpus = options_.for_machine.empty() ? report_.snapshot.gpus : here_;
    const auto among = [](const Target& target, const std::vector<Gpu>& known) {
      return std::ranges::any_of(
          known, [&](const Gpu& gpu) { return target.ptx || gpu.sm == std::to_string(target.sm); });
    };
    // What came with scankit has code for GPUs that nobody asked about.
    const auto matters = [&](const Target& target) {
      const auto& list = request_.targets.list;
      return std::ranges::find(list, target) != list.end() || among(target, report_.snapshot.gpus.value);
    };
    std::vector<Target> elsewhere;
    for (const auto& [module, source] : sources_)
      for (const Target& target : source.targets)
        if (!among(target, gpus.value) && (!source.prebuilt || matters(target)) &&
            std::ranges::find(elsewhere, target) == elsewhere.end())
          elsewhere.push_back(target);
    if (!elsewhere.empty())
      unproven_.push_back(say("{} code (no matching GPU on this machine)", names_of(elsewhere, " ")));
  }

  void print(const std::string& text) const {
    std::fprintf(options_.json ? stderr : stdout, "%s\n", plain(text, false).c_str());
  }

  std::string python() const { return interpreter_of(report_.snapshot.python.value); }

  // What plan_text() and plan_json() need in addition to the plan.
  PlanView view() const {
    PlanView view{&plan_, &report_.snapshot, sources_};
    view.unproven = unproven_;
    view.proof = "scankit validate --quick --python " + shell_quoted(python());
    if (const auto ours = modules_of(plan_); !ours.empty()) view.proof += " --module " + ours.front();
    view.project = installer_.project;
    view.python = python();
    view.restore = "scankit restore --python " + shell_quoted(python()) +
                   (options_.target.empty() ? "" : " --target " + shell_quoted(options_.target));
    return view;
  }

  int end(int status, const FixOutcome& outcome) const {
    if (options_.json) std::fputs(plan_json(view(), outcome).c_str(), stdout);
    return status;
  }

  // With --json there is no question, since standard output gets JSON only.
  bool confirmed() const {
    if (options_.yes) return true;
    const Answer answer = options_.json ? Answer::Nobody : ask(say("Do it? [y/N]"));
    if (answer == Answer::Nobody)
      print(undone_before_ ? say("Nothing else was changed. To do it: add --yes")
                           : say("Nothing was changed. To do it: add --yes"));
    if (answer == Answer::No)
      print(undone_before_ ? say("Nothing else was changed.") : say("Nothing was changed."));
    return answer == Answer::Yes;
  }

  // Builds the modules of one part into `built_`. Modules that came with scankit are there already.
  Result<void> build_modules(const FixPlan& part) {
    for (const std::string& module : modules_of(part)) {
      if (built_.count(module) != 0) continue;  // it came with scankit
      SCANKIT_TRY(request_.module, bundled_module(module));
      SCANKIT_TRY(built_[module], build_module(*host_, report_.snapshot, request_));
    }
    return {};
  }

  // A build that fails ends its own part only; the others go on.
  void build_parts() {
    const IfInterrupted words(say(
        "interrupted: the environment was not changed. What was compiled is kept in the cache; run the same "
        "command again to go on from there"));
    for (PartResult& part : parts_)
      if (auto built = build_modules(part.plan); !built) {
        part.failed_at = FailedAt::Preparation;
        part.error = built.error();
      }
  }

  // Locks, builds, changes. A part that fails is undone by itself; independent parts stay.
  int act() {
    for (FixPlan& part : parts_of(plan_)) parts_.push_back({std::move(part), FailedAt::Nothing, {}, {}});
    const StateFolder state(plan_.place.base);
    const bool is_first = ::access(state.root().c_str(), F_OK) != 0;
    // Before minutes of compiling, not after them.
    auto lock = Lock::take(state.root());
    if (!lock) return refused(lock.error());
    build_parts();
    const Interruption interruption;
    if (std::ranges::any_of(parts_, &PartResult::kept)) {
      if (auto left = clear_what_is_left(state); !left) return refused(left.error());
      execute_parts(*host_, state, execute_request(lock->descriptor()), parts_);
    } else if (is_first) {
      std::move(*lock).leave_no_trace();
    }
    return tell_results();
  }

  // Removes what fixes left that were killed before they changed anything. One that was interrupted in a
  // change since recover_interrupted() is not undone here, since the user has not agreed to that.
  static Result<void> clear_what_is_left(const StateFolder& state) {
    SCANKIT_TRY(const auto left, interrupted(state));
    if (!left.empty())
      return Error{Errc::Conflict, say("another fix of this environment was interrupted meanwhile"),
                   say("run scankit fix again")};
    std::vector<std::string> lines;
    return recover(state, lines);
  }

  ExecuteRequest execute_request(int lock) const {
    ExecuteRequest request;
    request.built = &built_;
    request.python = python();
    request.project = installer_.project;
    request.project_installer = installer_;
    request.lock = lock;
    request.diagnose = [this] { return diagnose_environment(*host_, diagnosis_); };
    request.facts = [this] { return facts_of_environment(*host_, diagnosis_); };
    return request;
  }

  // Ends the run before anything was changed.
  int refused(const Error& error) const {
    const int code = report_error("fix", error, kExitFindings);
    report_error("fix", {Errc::Io, say("nothing was changed: the environment is as it was"), ""}, code);
    return end(code, {"failed", error.message, {}});
  }

  static int status_of(const PartResult& part) {
    return part.failed_at == FailedAt::Verification ? kExitValidationFailed : kExitBuildFailed;
  }

  // The status is that of the first part that failed; after a signal it is 128 plus its number.
  int tell_results() const {
    const bool any_kept = std::ranges::any_of(parts_, &PartResult::kept);
    FixOutcome outcome{any_kept ? "repaired" : "failed", "", {}};
    int status = kExitClean;
    for (const PartResult& part : parts_) {
      if (part.kept()) {
        tell_kept(part.plan);
        for (const std::string& note : part.result.notes) print(say("note: {}", note));
        outcome.notes.insert(outcome.notes.end(), part.result.notes.begin(), part.result.notes.end());
        continue;
      }
      const int failed = report_error("fix", part.error, status_of(part));
      if (status == kExitClean) {
        status = failed;
        outcome.message = part.error.message;
      }
      if (any_kept) tell_undone(part);
    }
    if (any_kept && status == kExitClean) status = tell_what_is_still_broken(outcome);
    if (any_kept) tell_what_is_left();
    if (any_kept && status != kExitClean) outcome.state = "partly_repaired";
    const bool old_state = std::ranges::none_of(
        parts_, [](const PartResult& part) { return part.failed_at == FailedAt::Undoing; });
    if (!any_kept && old_state)
      report_error("fix", {Errc::Io, say("nothing was changed: the environment is as it was"), ""}, status);
    for (const PartResult& part : parts_) outcome.kept.push_back(part.kept());
    const int signal = status == kExitClean ? 0 : Interruption::signal();
    return end(signal != 0 ? 128 + signal : status, outcome);
  }

  // The environment counts as repaired only if the doctor agrees: it looks once more at everything that it
  // was asked about, and what is still broken makes the status kExitFindings.
  int tell_what_is_still_broken(FixOutcome& outcome) const {
    if (!plan_.place.how_to_reach.empty()) put_on_path(plan_.place);
    DiagnosisRequest again = diagnosis_;
    again.after_a_fix = true;
    const Report now = diagnose_environment(*host_, again);
    int status = kExitClean;
    for (const Finding& finding : now.findings) {
      if (finding.severity() != Severity::Error || finding.because_of || !concerns(finding, modules()))
        continue;
      const bool named = finding.summary.find(finding.subject) != std::string::npos;
      const std::string line = named ? finding.summary : say("{}: {}", finding.subject, finding.summary);
      print(say("still broken: {}", line));
      outcome.still_broken.push_back(line);
      status = kExitFindings;
    }
    return status;
  }

  void tell_how_to_reach() const {
    if (plan_.place.how_to_reach.empty()) return;
    print(say("in this shell, run first: {}", plan_.place.how_to_reach));
    print(say("once, for every new shell: {}", plan_.place.for_good));
  }

  void tell_kept(const FixPlan& part) const {
    for (const std::string& module : modules_of(part))
      print(say("repaired: `import {}` works and its results are correct", module));
    for (const RepairStep& step : part.steps) {
      if (const auto* away = std::get_if<MoveAway>(&step.what))
        print(say("repaired: {} no longer hides {}", away->path, away->module));
      if (const auto* packages = std::get_if<ChangePackages>(&step.what))
        print(say("repaired: {}", packages->statements.empty() ? join(packages->change.requirements)
                                                               : join(packages->statements)));
      if (const auto* variable = std::get_if<SetVariable>(&step.what))
        print(variable->file.empty()
                  ? say("it works where this was run before, and was seen to: {}", shell_line(*variable))
                  : say("repaired in every shell that activates the environment from now on: {}",
                        variable->name));
    }
  }

  // What a failed part leaves: the old state, or with FailedAt::Undoing a half-undone one.
  void tell_undone(const PartResult& part) const {
    for (const RepairStep& step : part.plan.steps)
      print(part.failed_at == FailedAt::Undoing ? say("still wrong, and half undone: {}", step.why)
                                                : say("still wrong, and as it was: {}", step.why));
  }

  void tell_what_is_left() const {
    tell_how_to_reach();
    for (const std::string& part : unproven_) print(say("not tested: {}", part));
    if (!unproven_.empty()) print(say("to test it on that GPU: {}", view().proof));
    for (const std::string& todo : plan_.advice) print(say("left for you: {}", todo));
  }

  const FixOptions& options_;
  std::unique_ptr<Host> host_;
  BuildRequest request_;
  DiagnosisRequest diagnosis_;
  Report report_;
  Probed<std::vector<Gpu>> here_;
  FixPlan plan_;
  std::optional<Toolchain> toolchain_;
  std::map<std::string, ModuleSource> sources_;
  std::map<std::string, BuiltModule> built_;
  Installer installer_;
  std::vector<std::string> unproven_;
  std::vector<PartResult> parts_;
  bool undone_before_ = false;  // an interrupted fix, as was agreed to
};

}  // namespace

int run_fix(const FixOptions& options) { return FixRun(options).run(); }

}  // namespace scankit
