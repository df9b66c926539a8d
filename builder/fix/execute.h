// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "builder/compile/build.h"
#include "builder/fix/plan.h"

namespace scankit {

struct ExecuteRequest {
  const FixPlan* plan = nullptr;                              // one part of it (parts.h)
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
enum class FailedAt { Nothing, Preparation, Verification, Undoing };  // Undoing: the old state is not back

struct FixResult {
  std::string journal;             // its id
  std::vector<std::string> notes;  // what the user is to know
};

// Stages, journals, changes, verifies; on any failure everything is as it was. The caller holds the lock, has
// recovered and holds an Interruption. `failed_at` tells a failed verification from a failed preparation.
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

// Each part by itself, the ones that have not failed yet (in their build,
// say): what one leaves undone does not stop the next, but a signal does,
// and an undoing that failed. `request.plan`, `kept` and `run` are set here.
void execute_parts(const Host& host, const StateFolder& state, ExecuteRequest request,
                   std::vector<PartResult>& parts);

}  // namespace scankit
