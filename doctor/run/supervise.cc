// SPDX-License-Identifier: Apache-2.0
#include "doctor/run/supervise.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <fstream>
#include <optional>

#include "doctor/base/process.h"
#include "doctor/run/deaths.h"

namespace scankit::run {
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

namespace {

using Clock = std::chrono::steady_clock;

// What the event loop works on.
struct Watched {
  pid_t pid = -1;
  std::optional<int> status;  // of waitpid(2), once it has ended
  bool interrupted = false;
  Streams streams;
};

// Waits for something to do, at most `timeout` ms, and moves the bytes of every stream that is ready.
// `signals` is -1 if no signals are heard. False: nothing happened within the time.
bool relay_once(Streams& streams, int signals, int timeout) {
  std::vector<struct pollfd> waited{{signals, POLLIN, 0}};
  for (const RelayedStream& stream : streams.relayed) {
    const bool writes = is_pending(stream);
    waited.push_back({writes        ? stream.outer
                      : stream.open ? stream.ours.get()
                                    : -1,
                      static_cast<short>(writes ? POLLOUT : POLLIN), 0});
  }
  if (::poll(waited.data(), waited.size(), timeout) <= 0) return false;
  for (std::size_t i = 0; i < streams.relayed.size(); ++i) {
    RelayedStream& stream = streams.relayed[i];
    if (waited[i + 1].revents == 0) continue;
    is_pending(stream) ? write_stream(stream) : read_stream(stream);
  }
  return true;
}

bool is_any_pending(const Streams& streams) { return std::ranges::any_of(streams.relayed, is_pending); }
bool is_any_open(const Streams& streams) {
  return std::ranges::any_of(streams.relayed, &RelayedStream::open);
}

// Whether somebody wants us to end. Takes the signals that are there; those of our own children count for
// nothing.
bool asked_to_end(int signals) {
  signalfd_siginfo info{};
  bool asked = false;
  while (signals >= 0 && ::read(signals, &info, sizeof(info)) == sizeof(info))
    asked = asked || ::sigismember(&forwarded_signals(), static_cast<int>(info.ssi_signo)) == 1;
  return asked;
}

// Moves what the command has written so far. If the screen is stopped (^S), a signal ends the waiting.
void flush(Streams& streams, int signals) {
  for (;;) {
    const bool pending = is_any_pending(streams);
    if (!pending && !is_any_open(streams)) return;
    if (pending && asked_to_end(signals)) return;
    if (!relay_once(streams, pending ? signals : -1, pending ? -1 : 0)) return;
  }
}

// The third field of /proc/PID/stat: 'T' is stopped.
bool is_stopped(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const auto end = text.rfind(") ");
  return end != std::string::npos && end + 2 < text.size() && text[end + 2] == 'T';
}

// The command has stopped. If all of the group was stopped (^Z), so were we, and by now the command runs
// again. If it stopped only itself, we stop as well, so that the shell takes the job back.
void stop_with_command(Watched& watched) {
  constexpr timespec kUntilContinued{0, 20'000'000};
  // Twice: we may have been stopped within the first pause, and continued a moment before the command.
  for (int round = 0; round < 2; ++round) {
    ::nanosleep(&kUntilContinued, nullptr);
    if (!is_stopped(watched.pid)) return;
  }
  flush(watched.streams, -1);
  ::raise(SIGSTOP);
  ::kill(watched.pid, SIGCONT);
}

void look_for_end(Watched& watched) {
  int status = 0;
  while (!watched.status && ::waitpid(watched.pid, &status, WNOHANG | WUNTRACED) == watched.pid) {
    if (!WIFSTOPPED(status))
      watched.status = status;
    else
      stop_with_command(watched);
  }
}

// Programs read the size from the inner terminal. The kernel has sent them SIGWINCH with us, perhaps before
// the size was copied, so it is sent again; ours is told from the kernel's by its sender.
void take_new_size(Watched& watched, const signalfd_siginfo& info) {
  const bool terminal = std::ranges::any_of(watched.streams.relayed, &RelayedStream::terminal);
  if (!terminal || info.ssi_pid == static_cast<std::uint32_t>(::getpid())) return;
  copy_terminal_sizes(watched.streams);
  ::kill(0, SIGWINCH);
}

// ^C and ^\ come from the kernel and reach the whole group. Its SIGHUP, of a terminal that was closed, only
// reaches the leader of the session, which scankit is in a container.
void take_signal(Watched& watched, GroupWitness& witness, const signalfd_siginfo& info) {
  const int number = static_cast<int>(info.ssi_signo);
  if (number == SIGINT || number == SIGQUIT || number == SIGTERM || number == SIGHUP)
    watched.interrupted = true;
  const bool key = info.ssi_code == SI_KERNEL && number != SIGHUP;
  const bool group = witness.received(number);
  if (!group && !key && !watched.status) ::kill(watched.pid, number);
}

void take_signals(Watched& watched, GroupWitness& witness, int signals) {
  signalfd_siginfo info{};
  while (::read(signals, &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo == SIGCHLD)
      look_for_end(watched);
    else if (info.ssi_signo == SIGWINCH)
      take_new_size(watched, info);
    else
      take_signal(watched, witness, info);
  }
}

// A process that the command left behind still has the inner end of a stream, and may print as long as it
// lives. A copy of us moves its bytes; we end, as the shell expects.
void leave_relay(Streams& streams) {
  if ((!is_any_open(streams) && !is_any_pending(streams)) || ::fork() != 0) return;
  ::prctl(PR_SET_NAME, "scankit-relay");
  ::close(STDIN_FILENO);
  while (is_any_open(streams) || is_any_pending(streams)) relay_once(streams, -1, -1);
  ::_exit(0);
}

double monotonic_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

std::vector<pid_t> all_pids(const Watched& watched, const ProcessSampler& sampler,
                            const std::string& output) {
  std::vector<pid_t> pids = pids_in(output);
  pids.push_back(watched.pid);
  for (const SeenInterpreter& seen : sampler.interpreters())
    pids.insert(pids.end(), seen.pids.begin(), seen.pids.end());
  return pids;
}

// Until the command has ended: moves bytes, hears signals, and looks at the processes now and then.
void watch(Watched& watched, ProcessSampler& sampler, int signals) {
  GroupWitness witness;
  auto next = Clock::now() + std::chrono::milliseconds(5);
  while (!watched.status) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next - Clock::now()).count();
    relay_once(watched.streams, signals, static_cast<int>(std::max<long long>(left, 0)));
    take_signals(watched, witness, signals);
    if (signals < 0) look_for_end(watched);
    if (!watched.status && Clock::now() >= next) next = Clock::now() + sampler.look();
  }
}

}  // namespace

std::variant<CommandRun, NotStarted> run_command(const std::vector<std::string>& words) {
  const double since = monotonic_now();
  const MemoryKills kills = out_of_memory_kills();
  const HeardSignals heard = hear_signals();
  Watched watched;
  watched.streams = open_streams();
  const auto started = start_command(words, heard.before, watched.streams);
  if (const auto* failed = std::get_if<NotStarted>(&started)) {
    stop_hearing(heard);
    return *failed;
  }
  watched.pid = std::get<pid_t>(started);
  ProcessSampler sampler(watched.pid);
  watch(watched, sampler, heard.descriptor.get());
  flush(watched.streams, heard.descriptor.get());
  stop_hearing(heard);
  CommandRun run;
  run.status = *watched.status;
  run.interrupted = watched.interrupted;
  run.reader_gone = std::ranges::any_of(watched.streams.relayed, &RelayedStream::lost);
  run.seconds = monotonic_now() - since;
  leave_relay(watched.streams);
  if (run.status == 0) return run;
  run.within_line = ends_within_line(watched.streams);
  run.output = kept_text(watched.streams);
  run.interpreters = sampler.interpreters();
  run.programs = sampler.programs();
  const MemoryKills now = out_of_memory_kills();
  const auto deaths = deaths_in_kernel_log(all_pids(watched, sampler, run.output.text), since);
  run.crashed_in = deaths.crashed_in;
  run.memory_kills = std::max(deaths.memory_kills, now.group - kills.group);
  if (run.memory_kills == 0) run.memory_kills_of_machine = now.machine - kills.machine;
  return run;
}

}  // namespace scankit::run
