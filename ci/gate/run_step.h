// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/model/finding.h"

// The steps of a gate as child processes, and what their answers mean for the report.
namespace scankit {

// How a child of the gate ended. Its answer is in a file of its own.
struct StepEnd {
  int status = -1;  // of exit_status.h, where it exited
  int signal = 0;
  bool timed_out = false;
  double seconds = 0;
  std::string last_words;   // the last line that it wrote to stderr
  bool has_answer() const;  // it came to an end at which an answer is written
};

struct StepCommand {
  std::string name;               // "env check"
  std::string stem;               // "env-check": its files are DIR/env-check.json and DIR/env-check.step.json
  std::vector<std::string> argv;  // argv[0] is our own program
  std::string answer_option;  // the file that the child itself writes is named by this option; "": its stdout
  std::chrono::milliseconds timeout{0};
  std::string key;  // of everything that the answer depends on
};

std::string answer_file(const std::string& folder, const StepCommand& command);

// What a former run of the same command, of the same inputs, left in the folder: nothing where it has not
// come to its end, or where anything differs or is not whole.
std::optional<StepEnd> finished_before(const std::string& folder, const StepCommand& command);

// Runs the step, then stores its answer, and last how it ended: where the second file exists, the
// first is complete.
Result<StepEnd> run_step(const std::string& folder, const StepCommand& command);

// What a CI server shows next to the log. On GitHub that is the Markdown on the job's page
// ($GITHUB_STEP_SUMMARY) and, with `to_stdout`, annotations as workflow commands; on other servers
// nothing. Returns the exit status that it comes to.
int tell_job_page(const Report& report, int exit_status, bool to_stdout);

// The answer of `scankit validate --json` as questions and findings: one for each device, one for the
// comparison of speed, one for what could not be run.
Result<std::vector<Outcome>> validate_outcomes(std::string_view json);

// That a module does not import is one fault: where doctor names its cause, validate's word of it is taken
// out, so that what the policy says of the cause decides.
void leave_import_to_doctor(const std::vector<Outcome>& doctor, std::vector<Outcome>& validate);

}  // namespace scankit
