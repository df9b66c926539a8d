// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/result.h"
#include "validate/cases/cases.h"
#include "validate/report/validation.h"

namespace scankit::validate {

// One case on one device in one way. `what` points into ValidateRequest::cases.
struct Task {
  const Case* what;
  // "cpu" | "cuda:0", the way ("cuda:0+graph") and whose ("cpu@against"); one for CUDA is skipped by a
  // harness whose torch sees none.
  std::string device;
};
// One shape that is timed, forward and backward.
struct TimedShape {
  std::string device, dtype;
  int batch, dim, length, states;
  double seconds;      // for its samples, of both passes
  bool plain = false;  // beside the plain PyTorch recurrence, which needs memory for every state
  bool host = false;   // what one call costs the caller
};
// What is timed: the shapes of models, and one in several lengths.
std::vector<TimedShape> timed_shapes(const std::string& device, bool full);

// A kernel that the driver is asked about.
struct KernelQuestion {
  std::string image, symbol;  // a cubin's file
  unsigned threads, dynamic_shared;
};

// Everything that one child gets to know.
struct Job {
  std::string mode = "validate";  // or "oracle": print the reference's results; "kernels": answer `kernels`;
                                  // "devices": count the GPUs
  std::string module, against;
  int start_seconds = 120, case_seconds = 60;
  Tolerance tolerance;
  std::vector<Task> tasks;
  std::vector<TimedShape> timed;
  std::vector<std::string> model_devices;  // where a Mamba block is run with the module
  bool upstream_model = false;  // mamba_ssm's own too, where it is installed: its import takes long
  std::uint64_t seed = 0;
  std::vector<KernelQuestion> kernels;
  std::string device;     // of `kernels`: the GPU that is asked about
  std::string alone;      // a file: nothing is timed on a GPU's machine before scankit lets go of its lock
  std::string gpu_bands;  // the guard library: torch allocates through it on the GPU; "": as ever
};

// What goes to the harness's standard input.
std::string job_text(const Job& job);

// What one child of the harness has said so far.
struct ChildStory {
  bool greeted = false, ended = false;
  bool without_bands = false;   // it was to put bands around what lies on the GPU, and cannot
  std::string started, device;  // the case, or the phase, that began and has not ended
  std::size_t cases_done = 0;
  std::map<std::string, std::size_t> plan, done;  // device -> cases that the child will report, and has
  std::vector<KernelUse> kernels;                 // answers, in the order of the questions
  int gpus = 0;                                   // the answer to "devices"
};
// Takes in one line of the channel. A line that is no message of ours becomes a note.
void take_line(std::string_view line, Validation& validation, ChildStory& story);
// All whole lines of what a child has written.
void take_lines(std::string_view channel, Validation& validation, ChildStory& story);

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
  // "cpu", "cuda:0"; "cuda": every GPU. CUDA is passed over where torch sees none.
  std::vector<std::string> devices = {"cpu", "cuda:0"};
  bool require_cuda = false;  // asked for by name: its absence is not passed over
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

// A maintainer's own test as the one case of a validation, of mode "test": any file of pytest's, or a script. What it
// prints goes to standard error where `shown`.
Validation run_test_file(const std::string& python, const std::string& file, std::chrono::seconds limit,
                         bool shown);

// Small cases once more under NVIDIA's compute-sanitizer, each of its tools a case of its own among `seen`'s.
// A note where it is not here.
void run_sanitizer(const ValidateRequest& request, const std::string& script, Validation& seen);

}  // namespace scankit::validate
