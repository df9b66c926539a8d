// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>

#include "builder/build.h"
#include "builder/install/plan.h"

namespace scankit {

struct ExecuteRequest {
  const FixPlan* plan = nullptr;
  const BuiltModule* built = nullptr;  // where plan->install
  std::string module, python;          // python: what verifies
  std::function<void(const std::string&)> progress;
};
enum class FailedAt { Nothing, Preparation, Verification };

// Stages, journals, renames, verifies; on any failure everything is as it was. The caller holds the lock and
// has recovered. `failed_at` tells a failed verification from a failed preparation.
Result<void> execute_fix(const Host& host, const StateFolder& state, const ExecuteRequest& request,
                         FailedAt& failed_at);

}  // namespace scankit
