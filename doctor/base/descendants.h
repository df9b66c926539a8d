// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <functional>

// Children that outlive us: a SIGKILL of scankit leaves no compiler running.
// The child itself is ended by the kernel (die_with_parent), what it started
// in turn by a process of ours that does nothing but wait for our end.

namespace scankit {

// A process between us and a child whose descendants are all to end with it. Killing its process group is not
// enough: what called setsid(2), as every daemon does, is in another one, and is nobody's child any more. The
// kernel gives such a process to this one (PR_SET_CHILD_SUBREAPER, prctl(2)), which kills it once the child
// has ended, on SIGTERM, and when `parent` dies.
//
// To be called in a child that was forked. `become` is the program's part, in a second fork; it does not
// return. The caller ends as the program did.
[[noreturn]] void run_below_reaper(pid_t parent, const std::function<void()>& become);

// The two below allocate no memory, as nothing may after the fork of a process that has threads.

// SIGKILL to every child that this process has now; a child's number stays its own until it is reaped.
void kill_own_children();
// Ends this process as a child ended that waitpid(2) told
// `status` of: with its exit status, or by its signal.
[[noreturn]] void end_like(int status);

// To be called in a child between fork and exec. PR_SET_PDEATHSIG is about the *thread* that forked
// (prctl(2)): whoever forks must stay until the child has ended.
void die_with_parent(pid_t parent);

// The descriptor through which a child that leads a process group tells of itself, with join_watch() between
// fork and exec. The first call starts the watching process; -1 where that cannot be had.
int watch_channel();
void join_watch(int channel);  // the caller's own process group will be killed once scankit has ended
void leave_watch(
    pid_t group);  // from the parent, before the group's leader is reaped: its number is its own until then

// For a child that stays a copy of us and must keep no pipe open; -1 keeps none.
void close_all_but(int kept);

}  // namespace scankit
