// SPDX-License-Identifier: Apache-2.0
#include "builder/fix/execute.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>

#include "builder/fix/distribution.h"
#include "builder/fix/install_target.h"
#include "builder/fix/plan.h"
#include "builder/fix/transaction.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/base/tool_version.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/report/progress.h"

namespace scankit::fix {
namespace {

// One part while it is executed: stage_files(), then change_files() runs installers and renames, and
// verify_part() imports. roll_back_part() ends it after a failure of any but the first, which has changed
// nothing in the environment.
struct RunningPart {
  const Host& host;
  const ExecuteRequest& request;
  const FixPlan& plan;
  std::vector<const compile::BuiltModule*> built;  // that the plan installs
  Staging staging;
  Transaction transaction;
  std::vector<std::pair<std::string, std::optional<std::string>>> variables = {};  // as they were
  std::vector<std::string> notes = {};                                             // as in FixResult
  std::vector<Untested> untested = {};
  bool project_left = false;  // pyproject.toml and uv.lock are in the backup
  report::Progress progress = report::Progress();
};

Journal journal_of(const std::string& id, const ExecuteRequest& request) {
  Journal journal;
  journal.id = id;
  journal.run = request.run.empty() ? id : request.run;
  journal.module = join(modules_of(*request.plan));
  journal.version = kToolVersion;
  return journal;
}

Result<void> stage_files(RunningPart& part) {
  SCANKIT_CHECK(part.staging.make_folders(part.plan.place.site));
  for (const compile::BuiltModule* built : part.built) {
    part.progress.act(built->flavor == compile::Flavor::Torch
                          ? say("loading the built {}", built->module)
                          : say("loading the built {} without torch", built->module));
    SCANKIT_CHECK(part.staging.stage_module(part.host, *built, part.request.python));
  }
  return Interruption::check();
}

// The directories that an installer may change. A venv or a conda environment is one directory. For a
// Python among other programs, as in /usr, only its packages and their programs are saved.
std::vector<std::string> roots_of_installers(const Snapshot& snapshot, const std::string& site) {
  const Python& python = snapshot.python.value;
  if (python.kind == "venv" || python.kind == "uv" || python.kind == "conda") return {python.prefix};
  return {site, python.prefix + "/bin"};
}

// Keeps the old pyproject.toml and uv.lock, once for each part.
Result<void> leave_project(RunningPart& part, std::vector<Operation>& left) {
  if (part.request.project.empty() || part.project_left) return {};
  part.project_left = true;
  for (const char* file : {"pyproject.toml", "uv.lock"}) {
    SCANKIT_TRY(Operation kept, part.staging.leave_file(path_join(part.request.project, file)));
    left.push_back(std::move(kept));
  }
  return {};
}

// Writes every changed version into the journal. An Error if torch was exchanged though no step asked for
// it: an installer that does that for another package's sake breaks every compiled extension.
Result<void> note_versions(RunningPart& part, const Snapshot& before, const Snapshot& after) {
  bool torch_meant = false;
  for (const RepairStep& step : part.plan.steps)
    if (const auto* packages = std::get_if<ChangePackages>(&step.what))
      for (const auto& [name, version] : packages->before) torch_meant = torch_meant || name == "torch";
  const std::string torch = installed_version(before, "torch"), now = installed_version(after, "torch");
  if (torch != now && !torch_meant)
    return Error{Errc::Conflict,
                 message("the installer replaced torch {} with {}, which was not requested", torch, now),
                 message("install a release of the package that supports torch {}", torch)};
  std::map<std::string, std::pair<std::string, std::string>> versions;
  for (const Distribution& one : before.distributions.value)
    versions[installer::required_name(one.name)].first = one.version;
  for (const Distribution& one : after.distributions.value)
    versions[installer::required_name(one.name)].second = one.version;
  for (const auto& [name, change] : versions) {
    if (change.first == change.second) continue;
    part.transaction.add_step(message("{}: {} before, {} after; undone by restoring the old files", name,
                                      change.first.empty() ? "-" : change.first,
                                      change.second.empty() ? "-" : change.second));
  }
  return {};
}

// The old files get their second names before the first installer starts, and the installers' changes are
// noted after the last one has ended.
Result<void> run_installers(RunningPart& part) {
  const Snapshot before = part.request.facts();
  part.progress.act(say("hard-linking every file of {} into the backup", part.plan.place.base));
  std::vector<Operation> left;
  for (const std::string& root : roots_of_installers(before, part.plan.place.site)) {
    SCANKIT_TRY(Operation tree, part.staging.leave_tree(root));
    left.push_back(std::move(tree));
  }
  SCANKIT_CHECK(leave_project(part, left));
  SCANKIT_CHECK(part.transaction.apply(left));
  for (const RepairStep& step : part.plan.steps) {
    const auto* packages = std::get_if<ChangePackages>(&step.what);
    if (packages == nullptr) continue;
    for (const installer::InstallerCommand& command : packages->commands) {
      part.progress.act(say("running: {}", installer::shown(command)));
      part.transaction.add_step(message("ran: {}", installer::shown(command)));
      SCANKIT_CHECK(run_installer(command, part.request.lock));
    }
  }
  SCANKIT_CHECK(part.transaction.note_ends());
  const Snapshot after = part.request.facts();
  part.transaction.note_builds(builds_of(part.plan.steps, after));
  return note_versions(part, before, after);
}

// Sets the variable for the programs that verify: they must see what a new shell will see. Returns its value
// before.
std::pair<std::string, std::optional<std::string>> set_here(const SetVariable& variable) {
  const char* before = std::getenv(variable.name.c_str());
  std::pair<std::string, std::optional<std::string>> was(variable.name, std::nullopt);
  if (before != nullptr) was.second = before;
  (void)(variable.value.empty() ? ::unsetenv(variable.name.c_str())
                                : ::setenv(variable.name.c_str(), variable.value.c_str(), 1));
  return was;
}

// Our own renames, for all modules together: scripts and records first, then the files that Python imports,
// then what hides them. The file that import takes today goes last, so that what import takes changes in
// the last step.
Result<std::vector<Operation>> own_operations(RunningPart& part) {
  std::vector<Operation> operations;
  const auto add = [&](const std::vector<Operation>& more) {
    operations.insert(operations.end(), more.begin(), more.end());
  };
  for (const RepairStep& step : part.plan.steps) {
    if (const auto* variable = std::get_if<SetVariable>(&step.what)) {
      part.variables.push_back(set_here(*variable));
      if (variable->file.empty()) continue;  // the user's shell is told, and what it will do is proven
      SCANKIT_TRY(const Operation script,
                  part.staging.set_variable(*variable, part.transaction.journal().id));
      add({script});
    }
  }
  for (const compile::BuiltModule* built : part.built) {
    SCANKIT_TRY(const auto installation, part.staging.install(*built, part.plan.place.site));
    add(installation);
  }
  const Snapshot now = part.request.facts();
  std::vector<FileMove> moves;
  auto all = ours_of(part.plan);
  // An installer may have brought a copy that hides what an earlier part has put there.
  if (runs_installer(part.plan)) all.insert(all.end(), part.request.kept.begin(), part.request.kept.end());
  for (const InstallBundled& ours : all)
    for (FileMove& move : hiding_copies(now, ours, part.plan.place)) moves.push_back(std::move(move));
  for (const RepairStep& step : part.plan.steps)
    if (const auto* away = std::get_if<MoveAway>(&step.what)) moves.push_back({away->path, ""});
  for (const FileMove& move : moves) {
    SCANKIT_CHECK(may_move(part.host, move.path));
    SCANKIT_TRY(const Operation saved, part.staging.move_away(move.path));
    add({saved});
  }
  return operations;
}

// Gives the uv project a source entry for each module: `uv sync` removes what is not in the project.
Result<void> tell_project(RunningPart& part) {
  std::vector<Operation> left;
  SCANKIT_CHECK(leave_project(part, left));
  std::vector<std::string> wheels;
  for (const compile::BuiltModule* built : part.built) {
    SCANKIT_TRY(const auto wheel,
                part.staging.place_file(project_wheel(part.request.project, *built), wheel_bytes(*built)));
    left.push_back(wheel);
    wheels.push_back(wheel.target);
  }
  SCANKIT_CHECK(part.transaction.apply(left));
  part.progress.act(say("adding it to the uv project {}", part.request.project));
  add_to_project(part.request.project_installer, part.request.project, wheels, part.request.lock, part.notes);
  SCANKIT_CHECK(Interruption::check());
  return part.transaction.note_ends();
}

// Installers run first: they may bring or remove files that ours are put next to or replace.
Result<void> change_files(RunningPart& part) {
  if (runs_installer(part.plan)) SCANKIT_CHECK(run_installers(part));
  SCANKIT_TRY(auto operations, own_operations(part));
  SCANKIT_CHECK(part.transaction.apply(operations));
  if (!part.request.project.empty() && !part.built.empty()) SCANKIT_CHECK(tell_project(part));
  return Interruption::check();
}

Result<void> verify_module(RunningPart& part, const InstallBundled& ours) {
  part.progress.act(say("verifying: import torch, import {}, one call", ours.module));
  const std::string extra = part.plan.place.how_to_reach.empty() ? "" : part.plan.place.site;
  return verify_import(part.request.python, ours.module, path_join(part.plan.place.site, ours.file), extra);
}

// An Error if the doctor finds a cause again that the plan repaired.
Result<void> still_wrong(const std::vector<RepairStep>& steps, const Report& report) {
  for (const Finding& finding : report.findings) {
    if (finding.severity() != Severity::Error) continue;
    for (const RepairStep& step : steps)
      if (step.about == finding.module && step.cause == info(finding.cause).slug)
        return Error{Errc::ToolFailed, message("it is still wrong after the fix: {}", finding.summary),
                     message("see `scankit doctor`")};
  }
  return {};
}

void note_untested(RunningPart& part, const std::string& statement) {
  part.untested.push_back({statement, message("triton finds no GPU on this machine")});
  part.notes.push_back(say("`{}` was not tested: {}", statement, tr(part.untested.back().why)));
}

Result<void> verify_or_note(RunningPart& part, const std::string& statement) {
  part.progress.act(say("verifying: {}", statement));
  SCANKIT_TRY(const bool works, verify_statement(part.request.python, statement));
  if (!works) note_untested(part, statement);
  return {};
}

Result<void> verify_packages(RunningPart& part, const ChangePackages& packages) {
  for (const std::string& statement : packages.statements) SCANKIT_CHECK(verify_or_note(part, statement));
  if (packages.local.empty()) return {};
  part.progress.act(say("verifying: {}", import_of(packages.modules)));
  SCANKIT_TRY(const std::string untested, verify_package(part.request.python, packages.before.front().first,
                                                         packages.version, packages.modules));
  if (!untested.empty()) note_untested(part, untested);
  if (!packages.declared) return {};
  const auto works = verify_or_note(part, import_of(*packages.declared));
  if (works) return {};
  return Error{works.error().code, works.error().message,
               message("{} declares that they import", packages.declared->file)};
}

// Where the installer has put it.
Result<void> find_installed_test(const RunningPart& part, const std::string& distribution, TestRecord& test) {
  const Snapshot now = part.request.facts();
  const Distribution* installed = find_distribution(now.distributions.value, distribution);
  const std::string file =
      installed == nullptr ? "" : path_join(path_dirname(installed->path), test.of_wheel->file);
  const auto hash = sha256_file(file);
  if (!hash || *hash != test.of_wheel->sha256)
    return Error{
        Errc::Conflict,
        message("the test {} of the wheel is not what was installed as {}", test.of_wheel->file, file),
        message("see `scankit doctor`")};
  test.file = file;
  return {};
}

// The last word of a verification. Whatever the test said before, it must pass now; what it said is told with a failure.
Result<void> verify_test(RunningPart& part) {
  if (part.request.test == nullptr) return {};
  TestRecord& test = *part.request.test;
  for (const RepairStep& step : part.plan.steps)
    if (const auto* packages = std::get_if<ChangePackages>(&step.what); packages != nullptr && test.of_wheel)
      SCANKIT_CHECK(find_installed_test(part, packages->before.front().first, test));
  const InstallTarget& place = part.plan.place;
  if (!place.how_to_reach.empty()) {
    const char* before = std::getenv("PYTHONPATH");
    const std::string old = before == nullptr ? "" : before;
    part.variables.push_back(set_here({"PYTHONPATH", place.site + (old.empty() ? "" : ":" + old), ""}));
  }
  part.progress.act(say("verifying: the test {}", test.file));
  test.after = run_test(part.request.python, test.file);
  SCANKIT_CHECK(Interruption::check());
  if (test.after->state == declared::TestState::Passed) return {};
  return Error{Errc::ToolFailed, message("the test {} {}", test.file, declared::in_words(*test.after)),
               message("before the change it {}", declared::in_words(test.before))};
}

// A module of ours is proven by a call. For other steps the doctor must no longer find what the plan
// repaired, and modules of earlier parts must still work.
Result<void> verify_part(RunningPart& part) {
  for (const InstallBundled& ours : ours_of(part.plan)) SCANKIT_CHECK(verify_module(part, ours));
  bool look_again = false;
  for (const RepairStep& step : part.plan.steps) {
    if (const auto* packages = std::get_if<ChangePackages>(&step.what))
      SCANKIT_CHECK(verify_packages(part, *packages));
    look_again = look_again || step.ask_again || !std::holds_alternative<InstallBundled>(step.what);
  }
  if (look_again) {
    for (const InstallBundled& ours : part.request.kept) SCANKIT_CHECK(verify_module(part, ours));
    SCANKIT_CHECK(still_wrong(part.plan.steps, part.request.diagnose()));
  }
  SCANKIT_CHECK(verify_test(part));
  return Interruption::check();
}

// The variables of this process are set back as well, or the next part would be verified with them.
Error roll_back_part(RunningPart& part, const Error& why) {
  for (const auto& [name, before] : part.variables)
    (void)(before ? ::setenv(name.c_str(), before->c_str(), 1) : ::unsetenv(name.c_str()));
  return part.transaction.roll_back(why);
}

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
  std::vector<const compile::BuiltModule*> built;
  for (const std::string& module : modules_of(*request.plan)) built.push_back(&request.built->at(module));
  RunningPart part{host, request, *request.plan, built, {state, id}, {state, journal_of(id, request)}};
  // No journal exists yet, so there is nothing to undo: the staged files are removed.
  if (auto prepared = stage_files(part); !prepared) {
    std::error_code ignored;
    std::filesystem::remove_all(state.root() + "/staging", ignored);
    std::filesystem::remove(state.backup(id), ignored);
    return prepared.error();
  }
  auto done = change_files(part);
  if (done) {
    failed_at = FailedAt::Verification;
    done = verify_part(part);
  }
  if (done) done = part.transaction.commit();
  if (done) {
    failed_at = FailedAt::Nothing;
    return FixResult{part.transaction.journal().id, part.notes, part.untested};
  }
  const Error why = roll_back_part(part, done.error());
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
      part.error = going ? Error{Errc::Conflict, message("not tried, because an earlier step failed"), ""}
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

}  // namespace scankit::fix
