// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string_view>

#include "doctor/base/process.h"

namespace scankit {
namespace {

// Everything in this file runs after the fork of a process that may have threads, so it allocates no
// memory and calls only async-signal-safe functions.

// Parses a process number; 0 if the text is not a number, as most names in /proc are.
pid_t process_number(std::string_view text) {
  pid_t number = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9' || number > 100'000'000) return 0;
    number = number * 10 + (digit - '0');
  }
  return number;
}

// The parent of the process, 0 if it is unknown. /proc/N/stat is "N (NAME) STATE PARENT ...", and NAME
// may contain anything, parentheses and spaces included (proc(5)): the search for ')' starts at the end.
pid_t parent_of_process(int proc, std::string_view name) {
  constexpr std::string_view kFile = "/stat";
  std::array<char, 64> path{};
  if (name.size() + kFile.size() >= path.size()) return 0;
  std::memcpy(path.data(), name.data(), name.size());
  std::memcpy(path.data() + name.size(), kFile.data(), kFile.size());
  const int fd = ::openat(proc, path.data(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  std::array<char, 512> text;
  const ssize_t got = ::read(fd, text.data(), text.size());
  ::close(fd);
  std::string_view rest(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  const auto end = rest.rfind(')');
  if (end == std::string_view::npos || rest.size() < end + 5) return 0;
  rest.remove_prefix(end + 4);
  return process_number(rest.substr(0, rest.find(' ')));
}

}  // namespace

// Uses getdents64(2), because readdir(3) allocates. There is no race for a number: a child keeps it until
// it is reaped, and only this process reaps its children.
void kill_own_children() {
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
      const pid_t process = process_number(name);
      if (process > 1 && parent_of_process(proc, name) == self) ::kill(process, SIGKILL);
      at += length;
    }
  }
  ::close(proc);
}

void end_like(int status) {
  if (WIFEXITED(status)) ::_exit(WEXITSTATUS(status));
  const int number = WTERMSIG(status);
  const struct rlimit none = {};
  // The core file, if there is one, is the program's.
  ::setrlimit(RLIMIT_CORE, &none);
  ::signal(number, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  // The signal stays pending as long as it is blocked, and is delivered inside sigprocmask(2). The last
  // line is only reached for signals that do not end a process.
  ::raise(number);
  ::sigprocmask(SIG_UNBLOCK, &only, nullptr);
  ::_exit(128 + number);
}

namespace {

// Kills children until none is left. A process that dies hands its children to us before its death is
// reported, so no descendant is left when no child is left. The number of rounds is limited to 400 of 5
// ms: a process that waits for a dead network disk cannot be killed.
void end_all_descendants() {
  constexpr int kMostRounds = 400;
  constexpr timespec kPause{0, 5'000'000};
  for (int round = 0; round < kMostRounds; ++round) {
    kill_own_children();
    pid_t reaped = 0;
    while ((reaped = ::waitpid(-1, nullptr, WNOHANG)) > 0) continue;
    if (reaped < 0 && errno == ECHILD) return;
    ::nanosleep(&kPause, nullptr);
  }
}

// Waits for the program and stores its status. False: SIGTERM has come, either from scankit or because
// its parent has died. Both signals must be blocked, as sigwaitinfo(2) requires. Orphans are reaped
// along the way.
bool program_ends(pid_t program, int& status) {
  sigset_t waited;
  sigemptyset(&waited);
  sigaddset(&waited, SIGCHLD);
  sigaddset(&waited, SIGTERM);
  for (;;) {
    const int number = ::sigwaitinfo(&waited, nullptr);
    if (number == SIGTERM) return false;
    int each = 0;
    for (pid_t reaped; (reaped = ::waitpid(-1, &each, WNOHANG)) > 0;)
      if (reaped == program) {
        status = each;
        return true;
      }
  }
}

}  // namespace

void run_below_reaper(pid_t parent, const std::function<void()>& become) {
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::signal(SIGCHLD, SIG_DFL);
  ::prctl(PR_SET_NAME, "scankit-reaper");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  // Our parent may have died before PR_SET_PDEATHSIG was set, which then never fires.
  if (::getppid() != parent) ::_exit(127);
  const pid_t self = ::getpid(), program = ::fork();
  if (program < 0) ::_exit(126);
  if (program == 0) {
    die_with_parent(self);
    become();
    ::_exit(127);
  }
  // The reaper must not keep the program's pipes open, or their readers would never see the end.
  close_all_but(-1);
  int status = 0;
  const bool ended = program_ends(program, status);
  end_all_descendants();
  if (!ended) ::_exit(128 + SIGTERM);
  end_like(status);
}

namespace {

// The main loop of the watcher. Each message is a pid_t: the number of a group that registers, or minus
// the number of one that leaves. When scankit ends, the kernel closes the other end of the socket;
// recv(2) then returns 0, and all groups that are still registered are killed. The table has a fixed
// size, because nothing may be allocated.
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
    // A group that registers takes the first free place; one that leaves frees its own.
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

// Starts the watcher, and at a regular end of scankit closes the socket and waits for the watcher to end.
class Watch {
 public:
  Watch() {
    int ends[2];
    // SOCK_SEQPACKET keeps messages apart; in a pipe, messages of several children could be read as one.
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return;
    watcher_ = ::fork();
    if (watcher_ == 0) {
      ::close(ends[0]);
      watch(ends[1]);
    }
    ::close(ends[1]);
    // Never a number from 0 to 3: run_process() gives these to children, and scankit may have been
    // started with a standard stream closed.
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

// The watcher and the reaper start with a copy of each of our descriptors, and a pipe that one of them
// kept open would never end.
void close_all_but(int kept) {
#ifdef SYS_close_range
  // close_range(2) exists from Linux 5.9 on. With -1 the first range is everything below UINT_MAX - 1,
  // and the second one starts at 0.
  const auto number = static_cast<unsigned>(kept);
  if ((number == 0 || ::syscall(SYS_close_range, 0u, number - 1, 0u) == 0) &&
      ::syscall(SYS_close_range, number + 1, ~0u, 0u) == 0)
    return;
#endif
  // Older kernels: descriptors above this number stay open.
  constexpr int kMost = 1 << 16;
  for (int fd = 0; fd < kMost; ++fd)
    if (fd != kept) ::close(fd);
}

void die_with_parent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // See run_below_reaper() for this race.
  if (::getppid() != parent) ::_exit(127);
}

int watch_channel() {
  static const Watch watch;
  return watch.channel();
}

// MSG_NOSIGNAL in send_number(): a watcher that was killed must not take scankit with it.
void join_watch(int channel) { send_number(channel, ::getpid()); }

void leave_watch(pid_t group) { send_number(watch_channel(), -group); }

}  // namespace scankit
