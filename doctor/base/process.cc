// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "doctor/base/files.h"
#include "doctor/base/say.h"

extern char** environ;

namespace scankit {
namespace {

// The order of events: spawn() makes the pipes and forks, the child becomes the program, pump() moves the
// bytes until the child has ended or the time is up, and only then is the child reaped. The watcher and
// the reaper of descendants.cc make sure that no process survives scankit.
using Clock = std::chrono::steady_clock;

struct Pipe {
  Descriptor read, write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return Error{Errc::Io, message("cannot make a pipe: {}", std::strerror(errno)), ""};
  Pipe made{Descriptor(ends[0]), Descriptor(ends[1])};
  // The child's descriptors 0 to 3 are assigned with dup2(2), which would overwrite an end that already
  // has such a number, as happens if scankit was started with a standard stream closed.
  for (Descriptor* end : {&made.read, &made.write}) {
    if (end->get() > 3) continue;
    *end = Descriptor(::fcntl(end->get(), F_DUPFD_CLOEXEC, 4));
  }
  return made;
}

// For execve(2): the pointers refer to `words`, which must outlive them.
std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

// A child that runs, with our ends of its pipes. `channel` is only open with capture_channel.
struct Spawned {
  pid_t pid = -1;
  Pipe in, out, err, channel;
};

// Everything that the child needs, prepared before the fork: after the fork of a process with threads
// only async-signal-safe functions may be called (fork(2)), so the child must not allocate memory.
struct Launch {
  std::vector<std::string> programs;  // where PATH may have it
  std::vector<char*> argv, envp;
  const char* folder = nullptr;
  // The pipe ends that become descriptors 0 to 3 of the child. -1: that descriptor stays closed.
  std::array<int, 4> streams{-1, -1, -1, -1};  // what becomes 0 to 3
  // `failure` is the pipe through which the child reports that it could not start the program.
  int watch = -1, failure = -1;
  pid_t parent = 0;
  bool end_descendants = false;
};

// The files that execvp(3) would try, in its order. An empty entry of PATH means the current directory.
std::vector<std::string> places_of(const std::string& program) {
  if (program.find('/') != std::string::npos) return {program};
  const char* path = std::getenv("PATH");
  std::string rest(path != nullptr ? path : "/bin:/usr/bin");
  std::vector<std::string> places;
  for (bool more = true; more;) {
    const auto colon = rest.find(':');
    more = colon != std::string::npos;
    const std::string folder = rest.substr(0, colon);
    places.push_back(folder.empty() ? "./" + program : path_join(folder, program));
    if (more) rest.erase(0, colon + 1);
  }
  return places;
}

// As execvp(3), except that a text file without "#!" is not given to a shell. Returns only on failure.
// EACCES is reported only after the rest of PATH was searched in vain, as execvp does.
int execute(const Launch& launch) {
  int failed = ENOENT;
  for (const std::string& program : launch.programs) {
    ::execve(program.c_str(), launch.argv.data(), launch.envp.data());
    if (errno == EACCES) failed = EACCES;
    if (errno != EACCES && errno != ENOENT && errno != ENOTDIR) return errno;
  }
  return failed;
}

[[noreturn]] void become_program(const Launch& launch) {
  // The signal mask and ignored signals are inherited through execve(2). run_below_reaper() blocks every
  // signal, and run_process() ignores SIGPIPE; the program must start with neither.
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  for (std::size_t i = 0; i < launch.streams.size(); ++i)
    if (launch.streams[i] >= 0) ::dup2(launch.streams[i], static_cast<int>(i));
  int failed = launch.folder != nullptr && ::chdir(launch.folder) != 0 ? errno : 0;
  if (failed == 0) failed = execute(launch);
  // _exit, because exit(3) would flush the parent's buffers a second time. 127 is what shells use.
  (void)!::write(launch.failure, &failed, sizeof(failed));
  ::_exit(127);
}

[[noreturn]] void become(const Launch& launch) {
  // The child leads a process group of its own, so that one kill(2) reaches what it starts as well.
  ::setpgid(0, 0);
  // Not the watch: it would kill the reaper before the reaper has killed the others.
  if (launch.end_descendants) run_below_reaper(launch.parent, [&] { become_program(launch); });
  die_with_parent(launch.parent);
  join_watch(launch.watch);
  become_program(launch);
}

// Forks and waits until the program runs: the write end of `failure` is close-on-exec, so a read
// of zero bytes means that execve(2) succeeded, and a number is the errno of the failure. Returns
// that errno, or 0.
int start(const Launch& launch, Pipe& failure, pid_t& pid) {
  pid = ::fork();
  if (pid < 0) return errno;
  if (pid == 0) become(launch);
  // Our copy must be closed, or the read below would never see the end of the pipe.
  failure.write = Descriptor();
  int failed = 0;
  ssize_t got = 0;
  do {
    got = ::read(failure.read.get(), &failed, sizeof(failed));
  } while (got < 0 && errno == EINTR);
  if (got != sizeof(failed)) return 0;
  leave_watch(pid);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return failed;
}

Error cannot_start(const std::string& program, int failed) {
  const Errc code = failed == ENOENT || failed == ENOTDIR ? Errc::NotFound
                    : failed == EACCES || failed == EPERM ? Errc::PermissionDenied
                    : failed == ENOEXEC                   ? Errc::Malformed
                                                          : Errc::Io;
  return {code, message("cannot start {}: {}", program, std::strerror(failed)), ""};
}

Result<Spawned> spawn(const ProcessRequest& request) {
  Spawned child;
  SCANKIT_TRY(child.in, make_pipe());
  SCANKIT_TRY(child.out, make_pipe());
  SCANKIT_TRY(child.err, make_pipe());
  if (request.capture_channel) {
    SCANKIT_TRY(child.channel, make_pipe());
  }
  SCANKIT_TRY(Pipe failure, make_pipe());
  Launch launch;
  launch.programs = places_of(request.argv[0]);
  launch.argv = pointers(request.argv);
  if (request.environment) launch.envp = pointers(*request.environment);
  // Without a request the child gets our environment at this moment; environ is an array of pointers.
  if (!request.environment)
    for (char** variable = environ;; ++variable) {
      launch.envp.push_back(*variable);
      if (*variable == nullptr) break;
    }
  if (!request.working_directory.empty()) launch.folder = request.working_directory.c_str();
  launch.streams = {child.in.read.get(), child.out.write.get(), child.err.write.get(),
                    child.channel.write.get()};
  launch.watch = watch_channel();
  launch.failure = failure.write.get();
  launch.parent = ::getpid();
  launch.end_descendants = request.end_descendants;
  if (const int failed = start(launch, failure, child.pid); failed != 0)
    return cannot_start(request.argv[0], failed);
  // Close the child's ends: its output has no end for us as long as we have a copy open for writing.
  child.in.read = Descriptor();
  child.out.write = Descriptor();
  child.err.write = Descriptor();
  child.channel.write = Descriptor();
  return child;
}

// One stream that pump() reads: our end of the pipe, where its bytes go, and who else wants them.
struct Stream {
  Descriptor* end;
  std::string* into;
  const std::function<void(std::string_view)>* arrived = nullptr;
};

// Reads what is there, once. Returns false at the end of the stream or on an error. Bytes beyond the
// limit are read and dropped, so that the child does not block on a full pipe.
bool drain(const Stream& stream, std::size_t limit, bool& truncated) {
  std::array<char, 1u << 16> buffer;
  const ssize_t got = ::read(stream.end->get(), buffer.data(), buffer.size());
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (got == 0) return false;
  const auto length = static_cast<std::size_t>(got);
  if (stream.arrived != nullptr && *stream.arrived) (*stream.arrived)({buffer.data(), length});
  const std::size_t room = limit - std::min(limit, stream.into->size());
  stream.into->append(buffer.data(), std::min(room, length));
  truncated = truncated || room < length;
  return true;
}

// Writes as much of the child's input as the pipe takes, and closes the pipe when all is written. A child
// that does not read its input (EPIPE) loses the rest; that is not an error.
void feed(Descriptor& end, std::string_view& rest) {
  if (!rest.empty()) {
    const ssize_t put = ::write(end.get(), rest.data(), rest.size());
    if (put < 0 && errno != EINTR && errno != EAGAIN) rest = {};
    if (put > 0) rest.remove_prefix(static_cast<std::size_t>(put));
  }
  if (rest.empty()) end = Descriptor();
}

// Whether the child has ended, without reaping it (WNOWAIT): until it is reaped, the kernel gives its
// number and that of its group to nobody else, and kill(2) cannot hit a stranger.
bool has_ended(pid_t child) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_signo == SIGCHLD;
}

// Tells the reaper to kill everything below it, and gives it 3 seconds before the caller kills it.
void ask_reaper_to_end(pid_t reaper) {
  constexpr auto kMoment = std::chrono::seconds(3);
  ::kill(reaper, SIGTERM);
  const auto stop = Clock::now() + kMoment;
  while (!has_ended(reaper) && Clock::now() < stop) ::poll(nullptr, 0, 2);
}

// Moves bytes in both directions until the child has ended or the deadline has passed, kills what is left
// of its process group, and returns the status of waitpid(2). A grandchild may keep the pipes open after
// the child has ended; what is left in them is then read for at most 200 ms.
int pump(Spawned& child, const ProcessRequest& request, Clock::time_point deadline, ProcessResult& result) {
  std::vector<Stream> streams = {{&child.out.read, &result.out, &request.on_out},
                                 {&child.err.read, &result.err, &request.on_err}};
  if (request.capture_channel) streams.push_back({&child.channel.read, &result.channel, &request.on_channel});
  std::string_view input = request.standard_input;
  // A child that does not read must not block us while its own output waits to be read.
  ::fcntl(child.in.write.get(), F_SETFL, O_NONBLOCK);
  feed(child.in.write, input);
  bool ended = false;
  Clock::time_point stop = deadline;
  for (;;) {
    std::vector<pollfd> polled;
    for (const Stream& stream : streams) polled.push_back({stream.end->get(), POLLIN, 0});
    if (child.in.write.get() >= 0) polled.push_back({child.in.write.get(), POLLOUT, 0});
    if (!ended && has_ended(child.pid)) {
      ended = true;
      stop = std::min(stop, Clock::now() + std::chrono::milliseconds(200));
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(stop - Clock::now()).count();
    if ((ended && streams.empty()) || left <= 0) break;
    if (!ended && request.stop && request.stop()) {
      result.stopped = true;
      break;
    }
    // The end of a child wakes no poll(2) here, so it is looked for every 20 ms at the latest.
    ::poll(polled.data(), polled.size(),
           static_cast<int>(std::min<long long>(left, streams.empty() ? 5 : 20)));
    // Backwards, because a finished stream is erased: polled[i] still belongs to streams[i]
    // for smaller i.
    for (std::size_t i = streams.size(); i-- > 0;)
      if (polled[i].revents != 0 && !drain(streams[i], request.output_limit, result.truncated))
        streams.erase(streams.begin() + static_cast<std::ptrdiff_t>(i));
    if (child.in.write.get() >= 0) feed(child.in.write, input);
  }
  result.timed_out = !ended && !result.stopped;
  if (request.end_descendants) ask_reaper_to_end(child.pid);
  ::kill(-child.pid, SIGKILL);  // also what the child left behind in its group
  leave_watch(child.pid);
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

Result<ProcessResult> run_process(const ProcessRequest& request) {
  if (request.argv.empty()) return Error{Errc::InvalidArgument, message("no program to run"), ""};
  // A child that closes its input early must not kill scankit with SIGPIPE. A parent that ignores SIGCHLD
  // passes that on, and then children vanish without a status (waitpid(2)).
  static const bool ready = ::signal(SIGPIPE, SIG_IGN) != SIG_ERR && ::signal(SIGCHLD, SIG_DFL) != SIG_ERR;
  (void)ready;
  const auto start = Clock::now();
  SCANKIT_TRY(auto child, spawn(request));
  ProcessResult result;
  const int status = pump(child, request, start + request.timeout, result);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  result.duration = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
  return result;
}

Result<std::string> own_program() {
  char path[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  if (length > 0 && static_cast<std::size_t>(length) < sizeof path)
    return std::string(path, static_cast<std::size_t>(length));
  // The path as it was typed or found in PATH. A relative one is correct as long as nobody changes the
  // current directory, which scankit never does.
  const auto* started_as = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  if (started_as != nullptr && ::realpath(started_as, path) != nullptr) return std::string(path);
  return Error{Errc::Io, message("cannot find the path of this program: /proc is not mounted"), ""};
}

}  // namespace scankit
