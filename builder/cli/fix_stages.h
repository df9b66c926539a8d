// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "builder/cli/commands.h"
#include "builder/fix/execute.h"
#include "builder/fix/plan.h"
#include "doctor/host/host.h"
#include "doctor/model/finding.h"

// The stages of `scankit fix`. Each takes what the stages before it made and returns what the next ones need;
// fix_command.cc calls them in order. Nothing in the environment changes before execute_parts(), except that an
// interrupted fix is undone, after a question.

namespace scankit::cli {

// What to diagnose: the same before a fix and after it, or the two reports could not be compared.
struct DiagnosisRequest {
  std::string python;
  std::vector<std::string> modules;  // that the user named; empty: what is installed or needed
  bool after_a_fix = false;          // give an import as long as the verification gave it
};

// What `scankit doctor` would say, with really imported modules. If no module is named, every
// extension that uses torch is read as well.
Report diagnose_environment(const Host& host, const DiagnosisRequest& request);

// The facts that can be read from files, without an import: cheap enough between the steps of a fix.
Snapshot facts_of_environment(const Host& host, const DiagnosisRequest& request);

// What is known once the doctor has looked. It does not change until the run ends.
struct FixContext {
  const FixOptions& options;
  const Host& host;
  DiagnosisRequest diagnosis;          // asked again when everything is done
  Report report;                       // with --for: with the GPUs and the driver of that machine
  Probed<std::vector<Gpu>> gpus_here;  // of this machine: for these code can be tested
  std::string test = {};               // the file of --test, or of scankit.module.yaml; "" for none
  bool undone_before = false;          // an interrupted fix was undone, as was agreed to
};

// Where each module of the plan comes from, by name. `built` has those that came with scankit; the others are
// compiled once the plan is agreed to.
struct ModuleSources {
  std::map<std::string, fix::ModuleSource> sources;
  std::map<std::string, compile::BuiltModule> built;
};

enum class Recovery { Nothing, Undone, Declined };

// fix_prepare.cc
//
// The options that concern the build. An Error is a usage error.
Result<compile::BuildRequest> fix_request(const FixOptions& options);
// Where modules go for this interpreter: its site-packages, or --target.
Result<fix::InstallTarget> fix_target(const Host& host, const std::string& python, const std::string& asked);
// Undoes what a killed fix left in the environment of `base`, after asking. It has the lock only meanwhile: the
// plan comes first, and the change takes it again. With --dry-run it only says what would be undone.
Result<Recovery> recover_interrupted(const Host& host, const FixOptions& options, const std::string& base);
// Before anything is promised: may this user write there, and move what the plan moves away?
Result<void> check_changes_allowed(const FixContext& context, const fix::FixPlan& plan);
// `request` with what only the plan decides: a compiler may be downloaded, and torch's CUDA for the torch flavor.
Result<compile::BuildRequest> request_for_plan(const FixContext& context, const fix::FixPlan& plan,
                                               compile::BuildRequest request);
// For each module of the plan what came with scankit, else a compiler. All modules share one toolchain.
Result<ModuleSources> find_sources(const FixContext& context, const fix::FixPlan& plan,
                                   const compile::BuildRequest& request);
// The code that cannot be tested here: that for GPUs which this machine does not have. The import and the results
// on the CPU are tested in any case.
std::vector<std::string> unproven_code(const FixContext& context,
                                       const std::map<std::string, fix::ModuleSource>& sources,
                                       const module::TargetRequest& targets);

// fix_results.cc: what is said, on standard output, or on standard error where that gets JSON.
//
void print_line(const FixOptions& options, const std::string& text);
// --yes, or the answer on a terminal. With --json there is no question.
bool confirmed(const FixOptions& options, bool undone_before);
// Puts the place on PYTHONPATH for this process and for what it starts.
void put_on_path(const fix::InstallTarget& place);
// What plan_text() and plan_json() need in addition to the plan.
fix::PlanView plan_view(const FixContext& context, const fix::FixPlan& plan,
                        const std::map<std::string, fix::ModuleSource>& sources,
                        std::vector<std::string> unproven, const std::string& project);
// Ends the run with `status`; prints the answer of --json.
int end_fix(const FixContext& context, const fix::PlanView& view, int status, const fix::FixOutcome& outcome);
int explain_no_action(const FixContext& context, const fix::FixPlan& plan);
// Ends the run before anything was changed.
int refuse(const FixContext& context, const fix::PlanView& view, const Error& error);
// The status is that of the first part that failed; after a signal it is 128 plus its number. The environment
// counts as repaired only if the doctor, asked once more, agrees.
int tell_results(const FixContext& context, const fix::PlanView& view,
                 const std::vector<fix::PartResult>& parts, const std::optional<fix::TestRecord>& test);

}  // namespace scankit::cli
