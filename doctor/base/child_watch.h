// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

// Children that outlive us: a SIGKILL of scankit leaves no compiler running. The child itself is ended by the
// kernel (die_with_parent), what it started in turn by a process of ours that does nothing but wait for our
// end.
namespace scankit {

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
