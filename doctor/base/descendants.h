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

}  // namespace scankit
