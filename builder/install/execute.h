// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "builder/build.h"
#include "builder/install/plan.h"

namespace scankit {

struct ExecuteRequest {
  const FixPlan* plan = nullptr;
  const std::map<std::string, BuiltModule>* built = nullptr;  // by name: modules_of(*plan)
  std::string python;                                         // what verifies
  std::string project;                                        // the uv project whose environment it is, or ""
  Installer project_installer;
  int lock = -1;  // its descriptor: an installer holds it too
  std::function<void(const std::string&)> progress;
  std::function<Report()> diagnose;  // as before the fix
  std::function<Snapshot()> facts;   // the same without an import
};
enum class FailedAt { Nothing, Preparation, Verification };

struct FixResult {
  std::string journal;             // its id
  std::vector<std::string> notes;  // what the user is to know
};

// Stages, journals, changes, verifies; on any failure everything is as it was. The caller holds the lock and
// has recovered. `failed_at` tells a failed verification from a failed preparation.
Result<FixResult> execute_fix(const Host& host, const StateFolder& state, const ExecuteRequest& request,
                              FailedAt& failed_at);

}  // namespace scankit
