// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <functional>

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
// Ends this process as a child ended that waitpid(2) told `status` of: with its exit status, or by its
// signal.
[[noreturn]] void end_like(int status);

}  // namespace scankit
