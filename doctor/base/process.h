// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/result.h"

namespace scankit {

// A program to run and how. The defaults suit a short probe: 30 seconds, 4 MiB of each stream.
struct ProcessRequest {
  std::vector<std::string> argv;                        // argv[0] holds a '/' or is looked up in PATH
  std::optional<std::vector<std::string>> environment;  // "NAME=value"; unset: inherited
  std::string working_directory;                        // empty: inherited
  std::string standard_input;                           // written, then closed
  std::chrono::milliseconds timeout{30000};             // then the whole process group is killed
  std::size_t output_limit = 4u << 20;                  // of each stream; what is beyond is read and dropped
  bool end_descendants = false;  // also what left the child's process group ends with it (descendants.h)
  bool capture_channel = false;  // descriptor 3 of the child is a pipe whose bytes come back in `channel`
  // Called with each piece of a stream as it arrives, also beyond output_limit. Used for progress. It
  // runs in the thread of run_process() and delays the reading while it runs; pieces end anywhere,
  // not at newlines.
  std::function<void(std::string_view)> on_channel;
  std::function<void(std::string_view)> on_out, on_err;  // the same of the other streams
};

struct ProcessResult {
  int exit_code = -1;  // valid where signal == 0 and !timed_out
  // Signals of the child itself. SIGKILL with timed_out means that we sent it.
  int signal = 0;  // the signal that ended it
  bool timed_out = false;
  bool truncated = false;  // output_limit was reached
  std::string out, err, channel;
  std::chrono::milliseconds duration{0};
  bool ok() const { return !timed_out && signal == 0 && exit_code == 0; }
};

// Runs a child in its own process group, which ends with us, however we end (descendants.h). Errc::NotFound:
// no such program; Errc::PermissionDenied: not executable. A child that hangs, crashes or prints without end
// is a result, not an error.
Result<ProcessResult> run_process(const ProcessRequest& request);

// The absolute path of this program's file, as it is started again: from /proc, and where that is not mounted
// (a bare chroot) from what the kernel handed over at the start.
Result<std::string> own_program();

}  // namespace scankit
