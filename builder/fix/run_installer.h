// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <functional>

#include "builder/installer/installer.h"
#include "doctor/base/result.h"

namespace scankit {

// The keeper: a process between us and the user's installer. The installer shares our process group, since
// Ctrl-C and its questions are the terminal's, so what it starts cannot be killed as a group
// (doctor/base/process.h). Much of that is not its child any more: a build starts daemons, and may end
// before its compilers do. The kernel gives such orphans to the keeper (PR_SET_CHILD_SUBREAPER).
//
// If scankit is killed, or if the installer fails, the keeper kills everything that the installer started
// before its work is undone; until then the keeper has our lock. After a success nothing is killed: what
// stays is meant to stay.
//
// Call it in a child that was forked with all signals blocked. `become` is the installer's part and does not
// return; it gets the keeper's process id. The keeper ends as the installer did.
[[noreturn]] void keep_installer(pid_t parent, const std::function<void(pid_t)>& become);

// Runs the user's installer in the foreground: its output goes to standard error as it comes, and Ctrl-C
// reaches it. It dies with us, and so does everything that it started. Until then it has `lock`, a descriptor
// or -1, so that the next scankit waits for its end. Errc::ToolFailed if it failed.
Result<void> run_installer(const InstallerCommand& command, int lock);

}  // namespace scankit
