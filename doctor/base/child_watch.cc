// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/child_watch.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <mutex>

namespace scankit {
namespace {

// Only what may be called after a fork of a process that has threads. A group arrives as its number, and
// leaves as minus that.
[[noreturn]] void watch(int channel) {
  ::setsid();  // neither Ctrl-C nor a closed terminal ends it
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::prctl(PR_SET_NAME, "scankit-watch");
  close_all_but(channel);
  std::array<pid_t, 1024> groups{};
  for (;;) {
    pid_t message = 0;
    const ssize_t got = ::recv(channel, &message, sizeof(message), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof(message)) break;
    for (pid_t& group : groups)
      if (group == (message > 0 ? 0 : -message)) {
        group = message > 0 ? message : 0;
        break;
      }
  }
  for (const pid_t group : groups)
    if (group > 1) ::kill(-group, SIGKILL);
  ::_exit(0);
}

class Watch {
 public:
  Watch() {
    int ends[2];
    // A socket and not a pipe: its messages do not run into each other.
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return;
    watcher_ = ::fork();
    if (watcher_ == 0) {
      ::close(ends[0]);
      watch(ends[1]);
    }
    ::close(ends[1]);
    // Not a number that stands for a standard stream, whatever we were started without.
    if (watcher_ > 0) channel_ = ::fcntl(ends[0], F_DUPFD_CLOEXEC, 4);
    ::close(ends[0]);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() {
    if (channel_ >= 0) ::close(channel_);
    if (watcher_ < 0) return;
    while (::waitpid(watcher_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  int channel() const { return channel_; }

 private:
  int channel_ = -1;
  pid_t watcher_ = -1;
};

void send_number(int channel, pid_t number) {
  if (channel >= 0) (void)!::send(channel, &number, sizeof(number), MSG_NOSIGNAL);
}

}  // namespace

// The watching process has a copy of each descriptor of ours: a pipe that it kept open would never end.
void close_all_but(int kept) {
#ifdef SYS_close_range
  const auto number = static_cast<unsigned>(kept);
  if ((number == 0 || ::syscall(SYS_close_range, 0u, number - 1, 0u) == 0) &&
      ::syscall(SYS_close_range, number + 1, ~0u, 0u) == 0)
    return;
#endif
  constexpr int kMost = 1 << 16;  // Linux before 5.9
  for (int fd = 0; fd < kMost; ++fd)
    if (fd != kept) ::close(fd);
}

void die_with_parent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died before that was set
}

int watch_channel() {
  static const Watch watch;
  return watch.channel();
}

void join_watch(int channel) { send_number(channel, ::getpid()); }

void leave_watch(pid_t group) { send_number(watch_channel(), -group); }

}  // namespace scankit
