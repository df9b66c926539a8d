// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <optional>

#include "builder/cache.h"
#include "builder/choose_toolchain.h"
#include "builder/commands.h"
#include "builder/install/distribution.h"
#include "builder/install/execute.h"
#include "builder/install/lock.h"
#include "builder/install/transaction.h"
#include "builder/prebuilt.h"
#include "builder/shipped.h"
#include "doctor/base/column.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/checks/runner.h"
#include "doctor/probes/observed.h"
#include "doctor/probes/python.h"
#include "doctor/probes/snapshot.h"
#include "doctor/probes/whose_code.h"
#include "doctor/report/fold.h"
#include "doctor/report/plain.h"

namespace scankit {
namespace {

// One run of `scankit fix`, step by step; `status` is the answer where a step ends it.
class FixRun {
 public:
  explicit FixRun(const FixOptions& options) : options_(options), host_(make_real_host()) {}

  int run() {
    if (auto status = look()) return *status;
    if (plan_.kind != FixPlan::Kind::Act) return explain_no_action();
    if (auto status = find_toolchain()) return *status;
    print_plan();
    if (options_.dry_run) return kExitClean;
    if (!confirmed()) return kExitFindings;
    return act();
  }

 private:
  // Where, what is wrong, what to do about it. Recovers an interrupted fix first, since the facts depend on
  // it.
  std::optional<int> look() {
    auto request = build_request(options_.module, options_.arch, options_.compilation);
    if (!request) return complain("fix", request.error(), kExitUsage);
    request_ = std::move(*request);
    if (auto known = check_wish(options_.compilation.toolchain); !known)
      return complain("fix", known.error(), kExitUsage);
    request_.toolchain.asked = options_.compilation.toolchain;
    request_.toolchain.progress = tell;
    const auto python = chosen_python(*host_, options_.python);
    if (!python) return complain("fix", python.error(), options_.python.empty() ? kExitFindings : kExitUsage);
    const auto probed = probe_python(*host_, *python);
    if (!probed.present()) return complain("fix", {Errc::NotFound, probed.note, ""}, kExitFindings);
    auto place = choose_place(*host_, probed.value, options_.target);
    if (!place) return complain("fix", place.error(), kExitFindings);
    if (auto status = recover_interrupted(place->base)) return status;
    return diagnose_environment(*python, *place);
  }

  std::optional<int> recover_interrupted(const std::string& base) {
    const StateFolder state(base);
    if (options_.dry_run || ::access(state.root().c_str(), F_OK) != 0) return std::nullopt;
    if (const auto foreign = foreign_to_root(*host_, state.root()))
      return complain("fix", foreign_journal(*foreign), kExitFindings);
    auto lock = Lock::take(state.root());
    if (!lock) return complain("fix", lock.error(), kExitFindings);
    std::vector<std::string> lines;
    const auto recovered = recover(state, lines);
    for (const std::string& line : lines) print(line);
    if (!recovered) return complain("fix", recovered.error(), kExitFindings);
    return std::nullopt;
  }

  std::optional<int> diagnose_environment(const std::string& python, const InstallPlace& place) {
    SnapshotRequest request;
    request.python = python;
    request.modules = {name()};
    request.ask_nvml = true;
    report_ = diagnose(observed_snapshot(request));
    fold(report_);
    auto plan = plan_fix(report_, name(), place, request_.targets.list);
    if (!plan) return complain("fix", plan.error(), kExitFindings);
    plan_ = std::move(*plan);
    return std::nullopt;
  }

  // A snapshot's facts are English; what is told meanwhile is not (doctor/cli/gather.cc does the same).
  Snapshot observed_snapshot(SnapshotRequest& request) const {
    const Language* language = spoken_language();
    const Speaking facts_are_english(nullptr);
    const auto show = [&](const std::string& phase) {
      const Speaking to_the_user(language);
      tell(retold(phase));
    };
    request.progress = show;
    Snapshot snapshot = take_snapshot(*host_, request);
    ObserveRequest observe;
    observe.can_be_asked_for = false;  // a fix ends in the import that proves it: nothing to opt into
    observe.starting = [&] { show(say("importing torch and {}", name())); };
    snapshot.observations = observe_imports(*host_, snapshot, observe);
    return snapshot;
  }

  int explain_no_action() const {
    const std::string what = plan_.kind == FixPlan::Kind::NothingToDo ? say("nothing to do: {}", plan_.why)
                             : plan_.kind == FixPlan::Kind::NotRepairable
                                 ? say("scankit cannot repair this: {}", plan_.why)
                                 : say("nothing was changed: {}", plan_.why);
    print(what);
    for (const std::string& line : plan_.advice) print("  " + say("you can: {}", line));
    if (plan_.kind == FixPlan::Kind::NothingToDo) return kExitClean;
    return plan_.kind == FixPlan::Kind::NotRepairable ? kExitFindings : kExitInconclusive;
  }

  // Before anything is promised: is there a compiler, may we write?
  std::optional<int> find_toolchain() {
    if (auto good = check_place(plan_.place); !good) return complain("fix", good.error(), kExitFindings);
    if (const auto foreign = foreign_code(*host_, report_.snapshot))
      return complain("fix", foreign_place(*foreign), kExitFindings);
    if (!plan_.install) return std::nullopt;
    if (take_prebuilt()) return std::nullopt;
    const Cache cache(request_.cache_folder);
    // The plan shows what would be fetched, and nothing is done before it is agreed to.
    request_.toolchain.may_download = true;
    auto toolchain = choose_toolchain(*host_, report_.snapshot, request_.targets, cache, request_.toolchain);
    if (!toolchain) return complain("fix", toolchain.error(), kExitFindings);
    toolchain_ = std::move(*toolchain);
    return std::nullopt;
  }

  // What came with scankit needs no compiler. Damaged, it is told and passed over: a build may still do.
  bool take_prebuilt() {
    auto ready =
        prebuilt_module(prebuilt_folder(), *request_.module, request_.targets, report_.snapshot.gpus);
    if (!ready) tell(retold(ready.error().message));
    if (ready) prebuilt_ = std::move(*ready);
    return prebuilt_.has_value();
  }

  static void print(const std::string& text) { std::printf("%s\n", plain(text, false).c_str()); }
  static void line(const std::string& label, const std::string& text) {
    print("  " + in_column(label, 9) + text);
  }

  // Where the module comes from.
  void print_source() const {
    if (prebuilt_) {
      line(say("install"), say("{} for {} ({})", module_file(name()), names_of(prebuilt_->targets, " "),
                               prebuilt_->compiler));
      for (const std::string& note : prebuilt_->notes) line(say("note"), note);
      return;
    }
    for (const std::string& command :
         shown_fetches(*host_, report_.snapshot, Cache(request_.cache_folder), toolchain_))
      line(say("fetch"), command);
    line(say("build"), say("{} for {}, with {}", module_file(name()),
                           names_of(toolchain_.choice.targets, " "), toolchain_.said()));
    for (const std::string& note : toolchain_.choice.notes) line(say("note"), note);
  }

  void print_plan() const {
    const Snapshot& snapshot = report_.snapshot;
    print(say("The plan for {}", interpreter_of(snapshot.python.value)));
    line(say("wrong"), plan_.why);
    if (plan_.install) {
      print_source();
      line(say("write"), plan_.place.site + "/" + module_file(name()));
      line("", plan_.place.site + "/" + dist_info_name(name()));
    }
    const std::string backup = StateFolder(plan_.place.base).root() + "/backup";
    for (const FixPlan::Move& move : plan_.moves)
      line(say("move"), move.owner.empty()
                            ? say("{} into {}", move.path, backup)
                            : say("{} into {} (it belongs to {})", move.path, backup, move.owner));
    if (!plan_.place.how_to_reach.empty()) line(say("then"), plan_.place.how_to_reach);
    line(say("undo"), restore_line());
    std::fflush(stdout);  // the plan comes before the work, also in a pipe
  }

  const std::string& name() const { return request_.module->name; }

  std::string restore_line() const {
    return "scankit restore --python " + shell_quoted(interpreter_of(report_.snapshot.python.value)) +
           (options_.target.empty() ? "" : " --target " + shell_quoted(options_.target));
  }

  bool confirmed() const {
    if (options_.yes) return true;
    if (::isatty(STDIN_FILENO) == 0) {
      print(say("Nothing was changed. To do it: add --yes"));
      return false;
    }
    std::printf("%s ", say("Do it? [y/N]").c_str());
    std::fflush(stdout);
    const int answer = std::getchar();
    if (answer == 'y' || answer == 'Y') return true;
    print(say("Nothing was changed."));
    return false;
  }

  int act() {
    std::optional<BuiltModule> built = std::move(prebuilt_);
    if (plan_.install && !built) {
      auto made = build_module(*host_, report_.snapshot, request_);
      if (!made) return complain("fix", made.error(), kExitBuildFailed);
      built = std::move(*made);
    }
    const StateFolder state(plan_.place.base);
    auto lock = Lock::take(state.root());
    if (!lock) return complain("fix", lock.error(), kExitFindings);
    ExecuteRequest request{&plan_, built ? &*built : nullptr, name(),
                           interpreter_of(report_.snapshot.python.value), tell};
    FailedAt failed_at = FailedAt::Nothing;
    const auto done = execute_fix(*host_, state, request, failed_at);
    if (!done) {
      const int status =
          complain("fix", done.error(),
                   failed_at == FailedAt::Verification ? kExitValidationFailed : kExitBuildFailed);
      return complain("fix", {Errc::Io, say("nothing was changed: the environment is as it was"), ""},
                      status);
    }
    print(say("repaired: `import {}` works and computes right", name()));
    if (!plan_.place.how_to_reach.empty()) print(say("once per shell: {}", plan_.place.how_to_reach));
    return kExitClean;
  }

  const FixOptions& options_;
  std::unique_ptr<Host> host_;
  BuildRequest request_;
  Report report_;
  FixPlan plan_;
  std::optional<BuiltModule> prebuilt_;  // else toolchain_ builds
  Toolchain toolchain_;
};

}  // namespace

int run_fix(const FixOptions& options) { return FixRun(options).run(); }

}  // namespace scankit
