// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "builder/fix/execute.h"
#include "builder/fix/transaction.h"
#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"

namespace scankit::fix {
namespace {

// Kills everything below the keeper. All of this runs after a fork of a process that may have threads,
// so nothing here allocates memory. A process that dies leaves us its children before we hear of its
// death, so once we have no child none is left. Without /proc this waits until they end by themselves,
// which is as good.
void end_descendants(pid_t installer) {
  if (installer > 0) ::kill(installer, SIGKILL);
  do {
    kill_own_children();
  } while (::waitpid(-1, nullptr, 0) > 0 || errno == EINTR);
}

// Ends as the installer did. Processes of an installer that failed end with it; a daemon of one that
// succeeded is meant to stay.
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
    // The parent is gone: after a kill of scankit the keeper's parent is another process.
    if (::getppid() != parent) {
      end_descendants(installer);
      ::_exit(128 + SIGKILL);
    }
    siginfo_t info{};
    if (::sigwaitinfo(&all, &info) < 0) continue;
    int status = 0;
    for (pid_t ended; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;)
      if (ended == installer) end_as(status);
    // Only what the parent sent to us alone is passed on: the terminal signals the whole group.
    if (info.si_code == SI_USER && info.si_pid == parent) ::kill(installer, info.si_signo);
  }
}

namespace {

// The form that execve takes. Made before the fork, since nothing may allocate after it.
std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

// A file without a name, so that none has to be removed. The installer reads it as /proc/PID/fd/N of this
// process: `pip --python` starts another pip, which does not inherit descriptors.
Result<Descriptor> constraints_file(const std::vector<std::string>& lines) {
  Descriptor file(::memfd_create("constraints", MFD_CLOEXEC));
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  if (file.get() < 0 || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return Error{Errc::Io, message("cannot write a constraints file: {}", std::strerror(errno)), ""};
  return file;
}

// What the child keeps of ours: the lock, the constraints; -1 where there is none.
struct Kept {
  int lock, constraints;
};

// The installer's side of the fork, where only async-signal-safe functions may be called.
[[noreturn]] void become(const installer::InstallerCommand& command, char* const* argv, char* const* envp,
                         Kept kept, pid_t keeper, const sigset_t& signals) {
  die_with_parent(keeper);
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  for (const int fd : {kept.lock, kept.constraints})
    if (fd >= 0) ::fcntl(fd, F_SETFD, 0);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(number, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &signals, nullptr);
  if (!command.folder.empty() && ::chdir(command.folder.c_str()) != 0) ::_exit(126);
  ::execve(argv[0], argv, envp);
  ::_exit(127);
}

// Waits for the keeper and passes on one signal to us alone; Ctrl-C reaches the installer by itself.
int wait_for(pid_t child) {
  int status = 0, passed_on = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    if (const int number = Interruption::signal(); number != 0 && passed_on == 0) {
      passed_on = number;
      ::kill(child, number);
    }
  }
  return status;
}

}  // namespace

Result<void> run_installer(const installer::InstallerCommand& command, int lock) {
  auto given = command.argv;
  Descriptor constraints;
  if (!command.constraints.empty()) {
    SCANKIT_TRY(constraints, constraints_file(command.constraints));
    given.insert(given.end(), {"--constraint", "/proc/" + std::to_string(::getpid()) + "/fd/" +
                                                   std::to_string(constraints.get())});
  }
  const auto argv = pointers(given);
  const auto words = installer::variables_of(command);
  const auto envp = pointers(words);
  sigset_t all, before;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);  // what is passed on at once waits until the keeper listens
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0)
    keep_installer(parent, [&](pid_t keeper) {
      become(command, argv.data(), envp.data(), {lock, constraints.get()}, keeper, before);
    });
  const int failed = errno;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (child < 0)
    return Error{Errc::Io, message("cannot start {}: {}", command.argv[0], std::strerror(failed)), ""};
  const int status = wait_for(child);
  SCANKIT_CHECK(Interruption::check());
  if (WIFSIGNALED(status))
    return Error{Errc::ToolFailed,
                 message("`{}` was killed by signal {}", installer::shown(command), WTERMSIG(status)), ""};
  if (WEXITSTATUS(status) == 127)
    return Error{Errc::ToolFailed, message("cannot start {}", command.argv[0]), ""};
  if (WEXITSTATUS(status) != 0)
    return Error{Errc::ToolFailed,
                 message("`{}` exited with status {}", installer::shown(command), WEXITSTATUS(status)),
                 message("its output is above")};
  return {};
}

}  // namespace scankit::fix
