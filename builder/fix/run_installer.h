// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <functional>

#include "builder/installer/installer.h"
#include "doctor/base/result.h"

namespace scankit {

// A process between us and the user's installer. An installer shares our process group, since Ctrl-C and its
// questions are the terminal's, so what it starts cannot be ended as a group (doctor/base/descendants.h), and
// much of it is no longer its child: a build starts daemons, and ends before its compilers do. The keeper is
// the one whom the kernel gives all of these once their parents are gone (PR_SET_CHILD_SUBREAPER, prctl(2)).
//
// Where scankit is killed, or the installer ends badly, which is before its
// work is undone, everything that came of it is ended; the keeper has our
// lock until then. After a good end nothing is: what stays is meant to.
//
// To be called in a child that was forked with all signals blocked. `become` is the installer's part, to
// which the keeper's number is told; it does not return. The keeper ends as the installer did.
[[noreturn]] void keep_installer(pid_t parent, const std::function<void(pid_t)>& become);

// Runs the user's installer where they can see it: its output goes to standard error as it comes, and Ctrl-C
// reaches it. It dies with us, with all that it started, and until then they hold the lock:
// whoever comes next waits for their end. Errc::ToolFailed where it did not end well.
Result<void> run_installer(const InstallerCommand& command, int lock);

}  // namespace scankit
