// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "doctor/base/files.h"
#include "doctor/base/say.h"

extern char** environ;

namespace scankit {
namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
  Descriptor read, write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return Error{Errc::Io, say("cannot make a pipe: {}", std::strerror(errno)), ""};
  Pipe made{Descriptor(ends[0]), Descriptor(ends[1])};
  // The child's descriptors 0 to 3 are assigned by dup2; an end that already has such a number would be
  // overwritten.
  for (Descriptor* end : {&made.read, &made.write}) {
    if (end->get() > 3) continue;
    *end = Descriptor(::fcntl(end->get(), F_DUPFD_CLOEXEC, 4));
  }
  return made;
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

struct Spawned {
  pid_t pid = -1;
  Pipe in, out, err, channel;
};

Result<Spawned> spawn(const ProcessRequest& request) {
  Spawned child;
  SCANKIT_TRY(child.in, make_pipe());
  SCANKIT_TRY(child.out, make_pipe());
  SCANKIT_TRY(child.err, make_pipe());
  if (request.capture_channel) {
    SCANKIT_TRY(child.channel, make_pipe());
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, child.in.read.get(), 0);
  posix_spawn_file_actions_adddup2(&actions, child.out.write.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, child.err.write.get(), 2);
  if (request.capture_channel) posix_spawn_file_actions_adddup2(&actions, child.channel.write.get(), 3);
  if (!request.working_directory.empty())
    posix_spawn_file_actions_addchdir_np(&actions, request.working_directory.c_str());
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  auto argv = pointers(request.argv);
  auto envp = request.environment ? pointers(*request.environment) : std::vector<char*>{};
  const int failed = ::posix_spawnp(&child.pid, request.argv[0].c_str(), &actions, &attributes, argv.data(),
                                    request.environment ? envp.data() : environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) {
    const Errc code = failed == ENOENT || failed == ENOTDIR ? Errc::NotFound
                      : failed == EACCES || failed == EPERM ? Errc::PermissionDenied
                      : failed == ENOEXEC                   ? Errc::Malformed
                                                            : Errc::Io;
    return Error{code, say("cannot start {}: {}", request.argv[0], std::strerror(failed)), ""};
  }
  child.in.read = Descriptor();
  child.out.write = Descriptor();
  child.err.write = Descriptor();
  child.channel.write = Descriptor();
  return child;
}

struct Stream {
  Descriptor* end;
  std::string* into;
  const std::function<void(std::string_view)>* arrived = nullptr;
};

// False at the end of the stream.
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

void feed(Descriptor& end, std::string_view& rest) {
  if (!rest.empty()) {
    const ssize_t put = ::write(end.get(), rest.data(), rest.size());
    if (put < 0 && errno != EINTR && errno != EAGAIN) rest = {};
    if (put > 0) rest.remove_prefix(static_cast<std::size_t>(put));
  }
  if (rest.empty()) end = Descriptor();
}

// Waits until the child ends. A grandchild that keeps our pipes open does not keep us: once the child has
// ended, what is left in the pipes is read for a moment only.
int pump(Spawned& child, const ProcessRequest& request, Clock::time_point deadline, ProcessResult& result) {
  std::vector<Stream> streams = {{&child.out.read, &result.out}, {&child.err.read, &result.err}};
  if (request.capture_channel) streams.push_back({&child.channel.read, &result.channel, &request.on_channel});
  std::string_view input = request.standard_input;
  ::fcntl(child.in.write.get(), F_SETFL, O_NONBLOCK);
  feed(child.in.write, input);
  int status = 0;
  bool ended = false;
  Clock::time_point stop = deadline;
  for (;;) {
    std::vector<pollfd> polled;
    for (const Stream& stream : streams) polled.push_back({stream.end->get(), POLLIN, 0});
    if (child.in.write.get() >= 0) polled.push_back({child.in.write.get(), POLLOUT, 0});
    if (!ended && ::waitpid(child.pid, &status, WNOHANG) == child.pid) {
      ended = true;
      stop = std::min(stop, Clock::now() + std::chrono::milliseconds(200));
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(stop - Clock::now()).count();
    if ((ended && streams.empty()) || left <= 0) break;
    ::poll(polled.data(), polled.size(),
           static_cast<int>(std::min<long long>(left, streams.empty() ? 5 : 20)));
    for (std::size_t i = streams.size(); i-- > 0;)
      if (polled[i].revents != 0 && !drain(streams[i], request.output_limit, result.truncated))
        streams.erase(streams.begin() + static_cast<std::ptrdiff_t>(i));
    if (child.in.write.get() >= 0) feed(child.in.write, input);
  }
  if (!ended) {
    result.timed_out = true;
    ::kill(-child.pid, SIGKILL);
    while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
    }
  }
  ::kill(-child.pid, SIGKILL);  // what the child left behind in its group
  return status;
}

}  // namespace

Result<ProcessResult> run_process(const ProcessRequest& request) {
  if (request.argv.empty()) return Error{Errc::InvalidArgument, say("no program to run"), ""};
  static const bool ignored =
      ::signal(SIGPIPE, SIG_IGN) != SIG_ERR;  // a child that closes its input is no reason to die
  (void)ignored;
  const auto start = Clock::now();
  SCANKIT_TRY(auto child, spawn(request));
  ProcessResult result;
  const int status = pump(child, request, start + request.timeout, result);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  result.duration = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
  return result;
}

}  // namespace scankit
