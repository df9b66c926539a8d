// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <functional>

// No child outlives scankit: even after a SIGKILL of scankit no compiler keeps running. The kernel ends
// the direct child (die_with_parent()). What that child has started is ended by a watcher, a process of
// ours that only waits for our end, and where processes may leave the child's process group, by a
// reaper (run_below_reaper()).

namespace scankit {

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
