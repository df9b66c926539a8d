// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <vector>

#include "builder/compile/build.h"
#include "builder/fix/plan.h"

namespace scankit {

// Where a module of ours comes from.
struct ModuleSource {
  bool prebuilt = false;  // it came with scankit; else it is built
  std::vector<Target> targets;
  std::string compiler;              // "NVRTC 13.0 (torch's wheels)"
  std::vector<std::string> fetches;  // commands that bring the compiler
  std::vector<std::string> notes;    // of the choice
};

// What the output needs in addition to the plan.
struct PlanView {
  const FixPlan* plan = nullptr;
  const Snapshot* snapshot = nullptr;
  std::map<std::string, ModuleSource> sources;  // by module
  std::vector<Target> targets;                  // of the modules that are built
  std::string compiler;                         // "NVRTC 13.0 (torch's wheels)"
  std::vector<std::string> notes;               // of the choice
  std::vector<std::string> unproven;            // what cannot be proven on this machine
  std::string proof;                            // the command that proves it there
  std::string project;                          // the uv project that is told of it, or ""
  std::string restore;                          // the command that takes it back
  std::string python;
};

std::string plan_text(const PlanView& view);

// The answer of `scankit fix --json`. `state`: "planned", "repaired", "partly_repaired", "nothing_to_do",
// "not_repairable", "inconclusive", "declined", "failed" (nothing was changed).
struct FixOutcome {
  std::string state, message;
  std::vector<std::string> notes;
  std::vector<bool> kept;                 // by part; empty where nothing was tried
  std::vector<std::string> still_broken;  // what the doctor finds afterwards
};
std::string plan_json(const PlanView& view, const FixOutcome& outcome);

}  // namespace scankit
