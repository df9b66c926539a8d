// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

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
  std::string mode = "validate";  // or "oracle": print the reference's results; "kernels": answer `kernels`
  std::string module, against;
  int start_seconds = 120, case_seconds = 60;
  Tolerance tolerance;
  std::vector<Task> tasks;
  std::vector<TimedShape> timed;
  std::vector<std::string> model_devices;  // where a Mamba block is run with the module
  bool upstream_model = false;  // mamba_ssm's own too, where it is installed: its import takes long
  std::uint64_t seed = 0;
  std::vector<KernelQuestion> kernels;
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
};
// Takes in one line of the channel. A line that is no message of ours becomes a note.
void take_line(std::string_view line, Validation& validation, ChildStory& story);
// All whole lines of what a child has written.
void take_lines(std::string_view channel, Validation& validation, ChildStory& story);

}  // namespace scankit::validate
