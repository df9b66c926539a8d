// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/process.h"
#include "doctor/base/result.h"
#include "validate/run/run.h"

// The child processes of a run: their files and their Python, upstream's own tests, and the cases.
namespace scankit::validate {

// The paths of the written files. They must exist as long as children run.
struct Harness {
  std::string script;       // the file that Python is to run
  std::string pytest_file;  // a script: runs a pytest file for a limited time
  std::string guard;  // the library to preload: bands around what torch allocates on the CPU (guard/guard.cc)
};
// Writes the embedded harness into `directory`.
Result<Harness> write_harness(const std::string& directory);

// A child that runs `arguments` after `python`, with descriptor 3 as its channel and a malloc that fills
// fresh memory, so that a result's element which the module never writes is not by chance the old, right one.
ProcessRequest python_request(const std::string& python, const std::vector<std::string>& arguments,
                              std::chrono::milliseconds timeout);
// Loads `library` into the child and the processes that it starts, before the user's own LD_PRELOAD. Left
// out where its path contains a character that separates entries (ld.so(8)).
void preload(ProcessRequest& request, const std::string& library);

// "" where a trivial script works; else one line: it cannot be started, hangs, crashes, says nothing of ours.
std::string why_python_does_not_work(const std::string& python);

// How a child came to its end, in one clause: "the process crashed with SIGSEGV", "the process ended with
// status 3: last line of stderr".
std::string describe_end(const ProcessResult& result);
// "call.py, line 97 in forward": the innermost frame that
// faulthandler printed when it was ended; "" without one.
std::string where_it_was(const ProcessResult& result);
// True where the harness's own watchdog ended it.
bool ended_by_watchdog(const ProcessResult& result);

// Runs `request.upstream_tests` with the environment's pytest, which imports the installed module itself.
// The result is one case in `seen`. The run has `seconds`; if they are over, the tests that ran decide,
// and a note says how many did not. With the commented values there are thousands of tests, which come in
// an order that the run's seed shuffles.
void run_upstream_tests(const ValidateRequest& request, const Harness& harness, double seconds,
                        Validation& seen);

// `source`, a test file, with the values of commented decorators added to those in use. Upstream's file
// keeps most of its values in comments of one line, "# @pytest.mark.parametrize('name', [...])": complex
// A, fp16 and bf16, odd lengths. The values are added to the decorator of the same name at the same
// function. `enabled` counts the comments that were used.
std::string with_commented_parameters(std::string_view source, int& enabled);

// The cases of a run, worked through by a series of children. Each child gets all tasks that are left and works
// until it dies or is done, because importing torch takes seconds: a child for each case would be too slow, and one
// child for all would lose everything with the first crash.

using Clock = std::chrono::steady_clock;

// What all children of a run share.
struct Session {
  const ValidateRequest& request;
  const Harness& harness;
  Clock::time_point deadline;  // of the whole run
};

// One series of children: what is left to do, what was seen, and what lost children taught about the next one.
struct Series {
  std::vector<Task> tasks;  // that no child has finished
  Validation seen;
  bool guarded = false;  // the children have guard regions around every tensor on the GPU
  bool finished = false;
  bool timing = true, against = true, model = true;  // still asked for: no child was lost over it
  int lost_in_a_row = 0;
  std::size_t before_this_child = 0;  // results of earlier children
};

// Whether a device is a GPU that torch does not see, or cannot use.
bool is_absent(const std::string& device, const Validation& seen);

using MakeJob = std::function<Job(const Series&)>;
// Called for each piece of a child's channel, on the thread that runs the series.
using OnNews = std::function<void(const ChildStory&)>;

// Starts children until nothing is left to do or `seen.blocked` says why no more are started.
void run_children(const Session& session, Series& series, const MakeJob& job, const OnNews& on_news);

}  // namespace scankit::validate
