// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "ci/gate/policy.h"
#include "ci/gate/run_step.h"
#include "doctor/base/message.h"
#include "doctor/base/result.h"
#include "doctor/cli/reports.h"
#include "doctor/model/snapshot.h"

// What the parsed command lines of `scankit ci` do; cli.cc parses.
namespace scankit {

struct GateOptions {
  std::string policy;  // "": scankit-ci.yaml of this folder, where it is there
  std::string python;
  std::string out;  // the folder of the steps' answers; "": a temporary one
  bool resume = false, no_import = false, import_foreign = false, allow_empty = false;
  std::vector<std::string> required;
  std::string budget;
  ShowOptions show;
};
int run_gate(const GateOptions& options);

int run_policy_schema();

// The exit status of several steps: an internal error (3) outranks wrong usage (2), then comes the first
// of 1, 5, 6 and 7, then inconclusive (4), then 0.
int gate_status(const std::vector<int>& steps);

// The plan of a run: the command line of each step, and whether it is run at all. This one gives the
// command line without the option that names the answer's file. `program` is the path of this executable.
StepCommand step_command(const PolicyStep& step, const Policy& policy, const GateOptions& options,
                         const std::string& program);

// Why a step has nothing to look at here, in one sentence; empty where it has. What the policy demands
// (enabled: true) always has. `seen`: the machine, once doctor has told, else nullptr.
Message nothing_to_do(const PolicyStep& step, const Policy& policy, const GateOptions& options,
                      const Snapshot* seen);

// A hash of everything that an answer depends on: the policy, this program, the command line, the files
// that it names, and the environment (`environment` comes from environment_identity()). --resume takes an
// answer with the same key.
std::string step_key(const StepCommand& command, const Policy& policy, const std::string& policy_text,
                     const std::string& program_hash, const std::string& environment);

// A hash of what the static facts tell of an environment: interpreter, packages, torch, compiled files with
// their times, GPUs, driver, variables. Runs nothing of it.
std::string environment_identity(const std::string& python, const std::vector<std::string>& modules);

}  // namespace scankit
