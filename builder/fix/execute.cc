// SPDX-License-Identifier: Apache-2.0
#include "builder/fix/execute.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>

#include "builder/fix/distribution.h"
#include "builder/fix/install_target.h"
#include "builder/fix/interruption.h"
#include "builder/fix/packages.h"
#include "builder/fix/run_installer.h"
#include "builder/fix/staging.h"
#include "builder/fix/transaction.h"
#include "builder/fix/verify.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/base/tool_version.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/report/progress.h"

namespace scankit {
namespace {

// One part, in four steps: prepare() stages, change() runs installers and renames, verify() imports, commit()
// keeps. roll_back() is the end after a failure of any step but the first, which has changed nothing.
class Execution {
 public:
  Execution(const Host& host, const StateFolder& state, const ExecuteRequest& request, const std::string& id)
      : host_(host),
        request_(request),
        plan_(*request.plan),
        staging_(state, id),
        transaction_(state, journal_of(id, request)) {
    for (const std::string& module : modules_of(plan_)) ours_.push_back(&request.built->at(module));
  }

  Result<void> prepare() {
    SCANKIT_CHECK(staging_.make_folders(plan_.place.site));
    for (const BuiltModule* built : ours_) {
      progress_.act(built->flavor == Flavor::Torch
                        ? say("loading the built {}", built->module)
                        : say("loading the built {} without torch", built->module));
      SCANKIT_CHECK(staging_.stage_module(host_, *built, request_.python));
    }
    return Interruption::check();
  }

  // Installers run first: they may bring or remove files that ours are put next to or replace.
  Result<void> change() {
    if (runs_installer(plan_)) SCANKIT_CHECK(run_installers());
    SCANKIT_TRY(auto operations, own_operations());
    SCANKIT_CHECK(transaction_.apply(operations));
    if (!request_.project.empty() && !ours_.empty()) SCANKIT_CHECK(tell_project());
    return Interruption::check();
  }

  // A module of ours is proven by a call. For other steps the doctor must no longer find what the plan
  // repaired, and modules of earlier parts must still work.
  Result<void> verify() {
    for (const InstallBundled& ours : ours_of(plan_)) SCANKIT_CHECK(verify_module(ours));
    bool look_again = false;
    for (const RepairStep& step : plan_.steps) {
      if (const auto* packages = std::get_if<ChangePackages>(&step.what))
        for (const std::string& statement : packages->statements) {
          progress_.act(say("verifying: {}", statement));
          SCANKIT_CHECK(verify_statement(request_.python, statement));
        }
      look_again = look_again || step.ask_again || !std::holds_alternative<InstallBundled>(step.what);
    }
    if (look_again) {
      for (const InstallBundled& ours : request_.kept) SCANKIT_CHECK(verify_module(ours));
      SCANKIT_CHECK(still_wrong(request_.diagnose()));
    }
    return Interruption::check();
  }

  Result<FixResult> commit() {
    SCANKIT_CHECK(transaction_.commit());
    return FixResult{transaction_.journal().id, notes_};
  }
  // The variables of this process are set back as well, or the next part would be verified with them.
  Error roll_back(const Error& why) {
    for (const auto& [name, before] : variables_)
      (void)(before ? ::setenv(name.c_str(), before->c_str(), 1) : ::unsetenv(name.c_str()));
    return transaction_.roll_back(why);
  }

 private:
  static Journal journal_of(const std::string& id, const ExecuteRequest& request) {
    Journal journal;
    journal.id = id;
    journal.run = request.run.empty() ? id : request.run;
    journal.module = join(modules_of(*request.plan));
    journal.version = kToolVersion;
    return journal;
  }
  Result<void> verify_module(const InstallBundled& ours) {
    progress_.act(say("verifying: import torch, import {}, one call", ours.module));
    const std::string extra = plan_.place.how_to_reach.empty() ? "" : plan_.place.site;
    return verify_import(request_.python, ours.module, path_join(plan_.place.site, ours.file), extra);
  }

  // The journal is in English, unlike the progress, so `line` is called with English as the language.
  void note_step(const std::function<std::string()>& line) {
    const Speaking the_journal_is_english(nullptr);
    transaction_.add_step(line());
  }

  // The directories that an installer may change. A venv or a conda environment is one directory. For a
  // Python among other programs, as in /usr, only its packages and their programs are saved.
  std::vector<std::string> roots(const Snapshot& snapshot) const {
    const Python& python = snapshot.python.value;
    if (python.kind == "venv" || python.kind == "uv" || python.kind == "conda") return {python.prefix};
    return {plan_.place.site, python.prefix + "/bin"};
  }

  // Keeps the old pyproject.toml and uv.lock, once for each part.
  Result<void> leave_project(std::vector<Operation>& left) {
    if (request_.project.empty() || project_left_) return {};
    project_left_ = true;
    for (const char* file : {"pyproject.toml", "uv.lock"}) {
      SCANKIT_TRY(Operation kept, staging_.leave_file(path_join(request_.project, file)));
      left.push_back(std::move(kept));
    }
    return {};
  }

  // The old files get their second names before the first installer starts, and the installers' changes are
  // noted after the last one has ended.
  Result<void> run_installers() {
    const Snapshot before = request_.facts();
    progress_.act(say("giving every file of {} a second name in the backup", plan_.place.base));
    std::vector<Operation> left;
    for (const std::string& root : roots(before)) {
      SCANKIT_TRY(Operation tree, staging_.leave_tree(root));
      left.push_back(std::move(tree));
    }
    SCANKIT_CHECK(leave_project(left));
    SCANKIT_CHECK(transaction_.apply(left));
    for (const RepairStep& step : plan_.steps) {
      const auto* packages = std::get_if<ChangePackages>(&step.what);
      if (packages == nullptr) continue;
      for (const InstallerCommand& command : packages->commands) {
        progress_.act(say("running: {}", shown(command)));
        note_step([&] { return say("ran: {}", shown(command)); });
        SCANKIT_CHECK(run_installer(command, request_.lock));
      }
    }
    SCANKIT_CHECK(transaction_.note_ends());
    return note_versions(before, request_.facts());
  }

  // Writes every changed version into the journal. An Error if torch was exchanged though no step asked for
  // it: an installer that does that for another package's sake breaks every compiled extension.
  Result<void> note_versions(const Snapshot& before, const Snapshot& after) {
    bool torch_meant = false;
    for (const RepairStep& step : plan_.steps)
      if (const auto* packages = std::get_if<ChangePackages>(&step.what))
        for (const auto& [name, version] : packages->before) torch_meant = torch_meant || name == "torch";
    const std::string torch = installed_version(before, "torch"), now = installed_version(after, "torch");
    if (torch != now && !torch_meant)
      return Error{Errc::Conflict,
                   say("the installer exchanged torch {} for {}, which nobody asked for", torch, now),
                   say("ask for a release of the package that fits torch {}", torch)};
    std::map<std::string, std::pair<std::string, std::string>> versions;
    for (const Distribution& one : before.distributions.value)
      versions[required_name(one.name)].first = one.version;
    for (const Distribution& one : after.distributions.value)
      versions[required_name(one.name)].second = one.version;
    for (const auto& [name, change] : versions) {
      if (change.first == change.second) continue;
      note_step([&, &name = name, &change = change] {
        return say("{}: {} before, {} after; undone by putting the old files back", name,
                   change.first.empty() ? "-" : change.first, change.second.empty() ? "-" : change.second);
      });
    }
    return {};
  }

  // Our own renames, for all modules together: scripts and records first, then the files that Python imports,
  // then what hides them. The file that import takes today goes last, so that what import takes changes in
  // the last step.
  Result<std::vector<Operation>> own_operations() {
    std::vector<Operation> operations;
    const auto add = [&](const std::vector<Operation>& more) {
      operations.insert(operations.end(), more.begin(), more.end());
    };
    for (const RepairStep& step : plan_.steps) {
      if (const auto* variable = std::get_if<SetVariable>(&step.what)) {
        set_here(*variable);
        if (variable->file.empty()) continue;  // the user's shell is told, and what it will do is proven
        SCANKIT_TRY(const Operation script, staging_.set_variable(*variable, transaction_.journal().id));
        add({script});
      }
    }
    for (const BuiltModule* built : ours_) {
      SCANKIT_TRY(const auto installation, staging_.install(*built, plan_.place.site));
      add(installation);
    }
    const Snapshot now = request_.facts();
    std::vector<FileMove> moves;
    auto all = ours_of(plan_);
    // An installer may have brought a copy that hides what an earlier part has put there.
    if (runs_installer(plan_)) all.insert(all.end(), request_.kept.begin(), request_.kept.end());
    for (const InstallBundled& ours : all)
      for (FileMove& move : hiding_copies(now, ours, plan_.place)) moves.push_back(std::move(move));
    for (const RepairStep& step : plan_.steps)
      if (const auto* away = std::get_if<MoveAway>(&step.what)) moves.push_back({away->path, ""});
    for (const FileMove& move : moves) {
      SCANKIT_CHECK(may_move(host_, move.path));
      SCANKIT_TRY(const Operation saved, staging_.move_away(move.path));
      add({saved});
    }
    return operations;
  }

  // Sets the variable for the programs that verify: they must see what a new shell will see.
  void set_here(const SetVariable& variable) {
    const char* before = std::getenv(variable.name.c_str());
    variables_.emplace_back(variable.name,
                            before != nullptr ? std::optional<std::string>(before) : std::nullopt);
    (void)(variable.value.empty() ? ::unsetenv(variable.name.c_str())
                                  : ::setenv(variable.name.c_str(), variable.value.c_str(), 1));
  }

  // Gives the uv project a source entry for each module: `uv sync` removes what is not in the project.
  Result<void> tell_project() {
    std::vector<Operation> left;
    SCANKIT_CHECK(leave_project(left));
    std::vector<std::string> wheels;
    for (const BuiltModule* built : ours_) {
      SCANKIT_TRY(const auto wheel,
                  staging_.place_file(project_wheel(request_.project, *built), wheel_bytes(*built)));
      left.push_back(wheel);
      wheels.push_back(wheel.target);
    }
    SCANKIT_CHECK(transaction_.apply(left));
    progress_.act(say("telling the uv project {} about it", request_.project));
    add_to_project(request_.project_installer, request_.project, wheels, request_.lock, notes_);
    SCANKIT_CHECK(Interruption::check());
    return transaction_.note_ends();
  }

  // An Error if the doctor finds a cause again that the plan repaired.
  Result<void> still_wrong(const Report& report) const {
    for (const Finding& finding : report.findings) {
      if (finding.severity() != Severity::Error) continue;
      for (const RepairStep& step : plan_.steps)
        if (step.about == finding.module && step.cause == info(finding.cause).slug)
          return Error{Errc::ToolFailed, say("it is still wrong after the fix: {}", finding.summary),
                       say("see `scankit doctor`")};
    }
    return {};
  }

  const Host& host_;
  const ExecuteRequest& request_;
  const FixPlan& plan_;
  Staging staging_;
  Transaction transaction_;
  std::vector<const BuiltModule*> ours_;
  std::vector<std::pair<std::string, std::optional<std::string>>> variables_;  // as they were
  std::vector<std::string> notes_;
  bool project_left_ = false;
  Progress progress_;
};

}  // namespace

// Whether a journal is neither done nor undone. The next fix or restore continues it, and nothing else may be
// changed before that. Unreadable journals count as such.
static bool is_unfinished(const StateFolder& state) {
  const auto journals = state.journals();
  return !journals || std::ranges::any_of(*journals, [](const Journal& journal) {
    return journal.state == Journal::State::Applying || journal.state == Journal::State::Undoing;
  });
}

Result<FixResult> execute_fix(const Host& host, const StateFolder& state, const ExecuteRequest& request,
                              FailedAt& failed_at) {
  failed_at = FailedAt::Preparation;
  SCANKIT_TRY(const std::string id, state.next_id());
  Execution execution(host, state, request, id);
  // No journal exists yet, so there is nothing to undo: the staged files are removed.
  if (auto prepared = execution.prepare(); !prepared) {
    std::error_code ignored;
    std::filesystem::remove_all(state.root() + "/staging", ignored);
    std::filesystem::remove(state.backup(id), ignored);
    return prepared.error();
  }
  auto done = execution.change();
  if (done) {
    failed_at = FailedAt::Verification;
    done = execution.verify();
  }
  auto result = done ? execution.commit() : Result<FixResult>(done.error());
  if (result) {
    failed_at = FailedAt::Nothing;
    return result;
  }
  const Error why = execution.roll_back(result.error());
  if (is_unfinished(state)) failed_at = FailedAt::Undoing;
  return why;
}

void execute_parts(const Host& host, const StateFolder& state, ExecuteRequest request,
                   std::vector<PartResult>& parts) {
  bool stop = false;
  for (PartResult& part : parts) {
    if (!part.kept()) continue;
    if (auto going = Interruption::check(); stop || !going) {
      part.failed_at = FailedAt::Preparation;
      part.error = going ? Error{Errc::Conflict, say("not tried, since what came before it did not end"), ""}
                         : going.error();
      continue;
    }
    request.plan = &part.plan;
    auto done = execute_fix(host, state, request, part.failed_at);
    if (!done) {
      part.error = done.error();
      stop = part.failed_at == FailedAt::Undoing;
      continue;
    }
    part.result = std::move(*done);
    if (request.run.empty()) request.run = part.result.journal;
    const auto ours = ours_of(part.plan);
    request.kept.insert(request.kept.end(), ours.begin(), ours.end());
  }
}

}  // namespace scankit
