// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/cli/reports.h"

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

}  // namespace scankit
