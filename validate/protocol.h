// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "validate/cases.h"
#include "validate/validation.h"

namespace scankit::validate {

struct Task {
  const Case* what;
  std::string device;  // "cpu" | "cuda:0"; one for CUDA is skipped by a harness whose torch sees none
};
struct Job {
  std::string mode = "validate";  // or "oracle": print the reference's results
  std::string module;
  int start_seconds = 120, case_seconds = 60;
  Tolerance tolerance;
  std::vector<Task> tasks;
  std::vector<std::string> timed_devices;
  std::uint64_t seed = 0;
};

// What goes to the harness's standard input.
std::string job_text(const Job& job);

// What one child of the harness has said so far.
struct ChildStory {
  bool greeted = false, ended = false;
  std::string started, device;  // the case, or the phase, that began and has not ended
  std::size_t cases_done = 0;
};
// Takes in one line of the channel. A line that is no message of ours becomes a note.
void take_line(std::string_view line, Validation& validation, ChildStory& story);

}  // namespace scankit::validate
