// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "doctor/base/result.h"
#include "validate/cases/cases.h"
#include "validate/report/validation.h"
#include "validate/run/protocol.h"

namespace scankit::validate {

// What the progress line shows; run_validation() calls back with it whenever a child reports.
struct Progress {
  std::size_t done = 0, total = 0;
  std::string what;               // the case or phase that is running; "": none has begun
  std::string warning = {};       // what the user wants to know before the end, once; English
  std::chrono::seconds limit{0};  // after which it is given up; 0: not by itself
};

// Everything that a run is asked to do. The tasks of a run point into `cases`: the request must
// outlive the run.
struct ValidateRequest {
  std::string python;
  std::string module = "selective_scan_cuda";  // a dotted name, or a file where it holds a '/'
  std::string mode = "quick";                  // for the record
  std::uint64_t seed = 0;
  std::vector<Case> cases;
  std::vector<std::string> devices = {"cpu", "cuda:0"};  // CUDA is passed over where torch sees none
  bool require_cuda = false;                             // asked for by name: its absence is not passed over
  bool deterministic = false;
  bool timing = true;
  std::string upstream_tests;           // a file of mamba_ssm's tests; "": none
  bool commented_parameters = false;    // of that file: run those too
  bool upstream_model = false;          // with `model`: mamba_ssm's too, where it is installed
  bool model = false;                   // a Mamba block too; where the module has upstream's contract
  std::vector<TimedShape> shapes;       // what is timed; empty: the list for the mode
  std::string against;                  // a second module, as `module` is given; "": none
  std::string baseline, baseline_text;  // the file of a former run and what it holds; "": none
  std::chrono::seconds total{300};      // of everything
  std::chrono::seconds each_case{60};   // then the case counts as hung
  std::function<void(const Progress&)> progress;
};

// Runs the cases in children of the user's Python. Whatever those do is part of the result; an Error is only
// our own failure (no room for the harness's files, say).
Result<Validation> run_validation(const ValidateRequest& request);

// The harness's fp64 results of `cases`, as its channel lines, for the test that compares the two oracles.
Result<std::string> run_python_oracle(const std::string& python, const std::vector<Case>& cases);

// Small cases once more under NVIDIA's compute-sanitizer, each of its tools a case of its own among `seen`'s.
// A note where it is not here.
void run_sanitizer(const ValidateRequest& request, const std::string& script, Validation& seen);

}  // namespace scankit::validate
