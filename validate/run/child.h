// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "doctor/base/process.h"
#include "doctor/base/result.h"

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

}  // namespace scankit::validate
