// SPDX-License-Identifier: Apache-2.0
#include "builder/install/keeper.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace scankit {
namespace {

// All of this runs after a fork of a process that may have threads: no memory is allocated.

// 0 where the text is no number, as is every other name in /proc.
pid_t number_of(std::string_view text) {
  pid_t number = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9' || number > 100'000'000) return 0;
    number = number * 10 + (digit - '0');
  }
  return number;
}

// /proc/N/stat is "N (NAME) STATE PARENT ...", and a name may hold anything (proc(5)).
pid_t parent_of(int proc, const char* process) {
  std::array<char, 64> path{};
  const std::string_view name = process, file = "/stat";
  if (name.size() + file.size() >= path.size()) return 0;
  std::memcpy(path.data(), name.data(), name.size());
  std::memcpy(path.data() + name.size(), file.data(), file.size());
  const int fd = ::openat(proc, path.data(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  std::array<char, 512> text;
  const ssize_t got = ::read(fd, text.data(), text.size());
  ::close(fd);
  std::string_view rest(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  const auto end = rest.rfind(')');
  if (end == std::string_view::npos || rest.size() < end + 5) return 0;
  rest.remove_prefix(end + 4);
  return number_of(rest.substr(0, rest.find(' ')));
}

// Not readdir(3): it allocates. A child's number stays its own until it is reaped, which only we do.
void kill_children() {
  const pid_t self = ::getpid();
  const int proc = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (proc < 0) return;
  alignas(8) std::array<char, 1u << 14> entries;
  // struct linux_dirent64 of getdents64(2): u64 inode, u64 offset, u16 length, u8 type, name.
  constexpr std::size_t kLengthAt = 16, kNameAt = 19;
  for (;;) {
    const long got = ::syscall(SYS_getdents64, proc, entries.data(), entries.size());
    if (got <= 0) break;
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      std::uint16_t length = 0;
      std::memcpy(&length, entries.data() + at + kLengthAt, sizeof length);
      const char* name = entries.data() + at + kNameAt;
      const pid_t process = number_of(name);
      if (process > 1 && parent_of(proc, name) == self) ::kill(process, SIGKILL);
      at += length;
    }
  }
  ::close(proc);
}

// Who dies leaves us its children before we hear of its death, so nobody is left when nobody is ours. Without
// /proc this waits for their own end, which serves as well.
void end_descendants(pid_t installer) {
  if (installer > 0) ::kill(installer, SIGKILL);
  do {
    kill_children();
  } while (::waitpid(-1, nullptr, 0) > 0 || errno == EINTR);
}

[[noreturn]] void end_as(int status) {
  if (status != 0) end_descendants(0);
  if (WIFEXITED(status)) ::_exit(WEXITSTATUS(status));
  const int number = WTERMSIG(status);
  const struct rlimit none = {};
  ::setrlimit(RLIMIT_CORE, &none);  // the core, if any, is the installer's
  ::signal(number, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  ::raise(number);
  ::sigprocmask(SIG_UNBLOCK, &only, nullptr);
  ::_exit(128 + number);
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
