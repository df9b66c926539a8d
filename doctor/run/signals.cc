// SPDX-License-Identifier: Apache-2.0
#include "doctor/run/signals.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "doctor/base/process.h"

namespace scankit {
namespace {

// How long the rest of a group may take to get a signal that we have: timeout(1) sends it to its child
// first and to the group right after.
constexpr int kGroupDelay = 50;  // ms

[[noreturn]] void witness(int reports, pid_t parent) {
  die_with_parent(parent);
  ::prctl(PR_SET_NAME, "scankit-signals");
  close_all_but(reports);
  for (;;) {
    const int number = ::sigwaitinfo(&forwarded_signals(), nullptr);
    if (number <= 0) continue;
    const char report = static_cast<char>(number);
    if (::write(reports, &report, 1) != 1) ::_exit(0);
  }
}

}  // namespace

const sigset_t& forwarded_signals() {
  static const sigset_t signals = [] {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU})
      sigaddset(&set, number);
    return set;
  }();
  return signals;
}

// Its signals are blocked already: hear_signals() comes first.
GroupWitness::GroupWitness() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
  reports_ = Descriptor(ends[0]);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) witness(ends[1], parent);
  ::close(ends[1]);
}

GroupWitness::~GroupWitness() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
}

bool GroupWitness::received(int number) {
  struct pollfd reports {
    reports_.get(), POLLIN, 0
  };
  while (pid_ > 0 && ::poll(&reports, 1, kGroupDelay) > 0) {
    char report = 0;
    if (::read(reports_.get(), &report, 1) != 1) return false;
    if (report == number) return true;
  }
  return false;
}

HeardSignals hear_signals() {
  HeardSignals heard;
  sigset_t blocked = forwarded_signals(), read = forwarded_signals();
  for (const int number : {SIGCHLD, SIGWINCH}) {
    sigaddset(&blocked, number);
    sigaddset(&read, number);
  }
  sigaddset(&blocked, SIGPIPE);
  ::sigprocmask(SIG_BLOCK, &blocked, &heard.before);
  heard.descriptor = Descriptor(::signalfd(-1, &read, SFD_CLOEXEC | SFD_NONBLOCK));
  if (heard.descriptor.get() >= 0 && heard.descriptor.get() <= 2)
    heard.descriptor = Descriptor(::fcntl(heard.descriptor.get(), F_DUPFD_CLOEXEC, 3));
  return heard;
}

// A SIGPIPE that is still pending belongs to a write that has been dealt with.
void stop_hearing(const HeardSignals& heard) {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  constexpr timespec kNow{};
  while (::sigtimedwait(&pipe, nullptr, &kNow) > 0) continue;
  ::sigprocmask(SIG_SETMASK, &heard.before, nullptr);
}

}  // namespace scankit
