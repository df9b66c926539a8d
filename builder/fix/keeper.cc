// SPDX-License-Identifier: Apache-2.0
#include "builder/fix/keeper.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "doctor/base/descendants.h"

namespace scankit {
namespace {

// All of this runs after a fork of a process that may have threads: no memory is allocated.
//
// Who dies leaves us its children before we hear of its death, so nobody is left when nobody is ours. Without
// /proc this waits for their own end, which serves as well.
void end_descendants(pid_t installer) {
  if (installer > 0) ::kill(installer, SIGKILL);
  do {
    kill_own_children();
  } while (::waitpid(-1, nullptr, 0) > 0 || errno == EINTR);
}

// What came of an installer that ended badly ends with it; a daemon of one that ended well is meant to stay.
[[noreturn]] void end_as(int status) {
  if (status != 0) end_descendants(0);
  end_like(status);
}

}  // namespace

void keep_installer(pid_t parent, const std::function<void(pid_t)>& become) {
  ::prctl(PR_SET_NAME, "scankit-keeper");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::prctl(PR_SET_PDEATHSIG, SIGUSR1);  // any that wakes us: whether the parent lives is asked each time
  ::signal(SIGCHLD, SIG_DFL);
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  const pid_t self = ::getpid(), installer = ::fork();
  if (installer < 0) ::_exit(126);
  if (installer == 0) become(self);
  for (;;) {
    if (::getppid() != parent) {
      end_descendants(installer);
      ::_exit(128 + SIGKILL);
    }
    siginfo_t info{};
    if (::sigwaitinfo(&all, &info) < 0) continue;
    int status = 0;
    for (pid_t ended; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;)
      if (ended == installer) end_as(status);
    // The terminal's signals, and one to the whole group, the installer gets itself.
    if (info.si_code == SI_USER && info.si_pid == parent) ::kill(installer, info.si_signo);
  }
}

}  // namespace scankit
