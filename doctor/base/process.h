// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

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
  std::function<bool()> stop;    // asked at least every 20 ms: where it says so, the group is killed at once
  bool end_descendants = false;  // also what left the child's process group ends with it (descendants.cc)
  bool capture_channel = false;  // descriptor 3 of the child is a pipe whose bytes come back in `channel`
  // Called with each piece of a stream as it arrives, also beyond output_limit. Used for progress. It
  // runs in the thread of run_process() and delays the reading while it runs; pieces end anywhere,
  // not at newlines.
  std::function<void(std::string_view)> on_channel;
  std::function<void(std::string_view)> on_out, on_err;  // the same of the other streams
};

struct ProcessResult {
  int exit_code = -1;  // valid where signal == 0 and !timed_out
  // Signals of the child itself. SIGKILL with timed_out or stopped means that we sent it.
  int signal = 0;  // the signal that ended it
  bool timed_out = false;
  bool stopped = false;    // by ProcessRequest::stop
  bool truncated = false;  // output_limit was reached
  std::string out, err, channel;
  std::chrono::milliseconds duration{0};
  bool ok() const { return !timed_out && !stopped && signal == 0 && exit_code == 0; }
};

// Runs a child in its own process group, which ends with us, however we end (descendants.cc). Errc::NotFound:
// no such program; Errc::PermissionDenied: not executable. A child that hangs, crashes or prints without end
// is a result, not an error.
Result<ProcessResult> run_process(const ProcessRequest& request);

// The absolute path of this program's file, as it is started again: from /proc, and where that is not mounted
// (a bare chroot) from what the kernel handed over at the start.
Result<std::string> own_program();

// No child outlives scankit: even after a SIGKILL of scankit no compiler keeps running. The kernel ends
// the direct child (die_with_parent()). What that child has started is ended by a watcher, a process of
// ours that only waits for our end, and where processes may leave the child's process group, by a
// reaper (run_below_reaper()).

// Puts a process, the reaper, between us and a child whose descendants are all to end with it. Killing
// the child's process group is not enough: a process that called setsid(2), as every daemon does, is in
// another group, and once its parent is dead it is nobody's child. The kernel makes the reaper the parent
// of such orphans (PR_SET_CHILD_SUBREAPER, prctl(2)). The reaper kills them once the child has ended, on
// SIGTERM, and when `parent` dies.
//
// Call it in a forked child; that process becomes the reaper. `become` runs in a second fork, executes
// the program and does not return. The reaper then ends with the program's exit status or signal.
// return. The caller ends as the program did.
[[noreturn]] void run_below_reaper(pid_t parent, const std::function<void()>& become);

// The next two functions allocate no memory, which is forbidden after the fork of a process with threads.

// Sends SIGKILL to every child that this process has now.
void kill_own_children();
// Ends this process as the child of which waitpid(2) reported `status` has ended: with its exit status,
// or by its signal.
[[noreturn]] void end_like(int status);

// Makes the kernel kill this process when its parent dies. Call it between fork and exec.
// PR_SET_PDEATHSIG follows the *thread* that forked (prctl(2)): that thread must live until the
// child has ended.
void die_with_parent(pid_t parent);

// The socket to the watcher, through which a child that leads a process group registers itself. The first
// call starts the watcher; -1 if that is not possible.
int watch_channel();
// Registers the caller's process group: the watcher kills it once scankit has ended. For a child between
// fork and exec.
void join_watch(int channel);  // the caller's own process group will be killed once scankit has ended
// Unregisters a group. The parent calls it before it reaps the group's leader: until then nobody else can
// have the number.
void leave_watch(
    pid_t group);  // from the parent, before the group's leader is reaped: its number is its own until then

// Closes every descriptor but one; -1 closes all. For a child that remains a copy of us without exec, and
// would keep the other ends of our pipes open.
void close_all_but(int kept);

}  // namespace scankit
