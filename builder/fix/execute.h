// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "builder/compile/build.h"
#include "builder/fix/plan.h"

namespace scankit {

// What all parts of a run share, and the part to execute. The pointers must outlive the call.
struct ExecuteRequest {
  const FixPlan* plan = nullptr;                              // one part of it (plan.h)
  const std::map<std::string, BuiltModule>* built = nullptr;  // by name, modules_of(*plan) among them
  std::vector<InstallBundled> kept;  // of parts that this run has made before: they must stay right
  std::string run;                   // the first journal of this run, "" where this is it
  std::string python;                // what verifies
  std::string project;               // the uv project whose environment it is, or ""
  Installer project_installer;
  int lock = -1;                     // its descriptor: an installer holds it too
  std::function<Report()> diagnose;  // as before the fix
  std::function<Snapshot()> facts;   // the same without an import
};
// How far a part came. Preparation: staging, an installer, or a change failed. Verification: everything was
// in place and did not work.
enum class FailedAt { Nothing, Preparation, Verification, Undoing };  // Undoing: the old state is not back

struct FixResult {
  std::string journal;             // its id
  std::vector<std::string> notes;  // what the user is to know
};

// Stages, writes the journal, changes, and verifies. On a failure everything is as it was before, unless
// `failed_at` is Undoing. The caller has the lock, has called recover(), and keeps an Interruption alive.
Result<FixResult> execute_fix(const Host& host, const StateFolder& state, const ExecuteRequest& request,
                              FailedAt& failed_at);

// How a part of a plan ended.
struct PartResult {
  FixPlan plan;
  FailedAt failed_at = FailedAt::Nothing;
  Error error;       // where it failed; its changes are undone
  FixResult result;  // else
  bool kept() const { return failed_at == FailedAt::Nothing; }
};

// Executes each part by itself, except those that have failed already, as in their build. A part that fails
// does not stop the next one; a signal does, and so does an undoing that failed, since the environment is
// then in neither state. `request.plan`, `kept` and `run` are set here.
void execute_parts(const Host& host, const StateFolder& state, ExecuteRequest request,
                   std::vector<PartResult>& parts);

}  // namespace scankit
