// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "ci/fleet/lines.h"
#include "ci/fleet/slurm.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/cli/commands.h"

extern char** environ;

namespace scankit::fleet {
namespace {

volatile std::sig_atomic_t salloc_pid = 0;

void pass_on(int signal) {
  if (salloc_pid > 0) ::kill(static_cast<pid_t>(salloc_pid), signal);
}

// salloc stays in our process group and on our terminal, unlike the children of run_process(): it must see
// the user's Ctrl-C, give the allocation back, and outlive our own death by SIGKILL.
class Signals {
 public:
  Signals() {
    struct sigaction ignore {
    }, forward{};
    ignore.sa_handler = SIG_IGN;
    forward.sa_handler = pass_on;
    ::sigaction(SIGINT, &ignore, &interrupt_);
    ::sigaction(SIGTERM, &forward, &terminate_);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals() {
    salloc_pid = 0;
    ::sigaction(SIGINT, &interrupt_, nullptr);
    ::sigaction(SIGTERM, &terminate_, nullptr);
  }

 private:
  struct sigaction interrupt_ {
  }, terminate_{};
};

int spawn(const std::vector<std::string>& argv, int error_end, pid_t& pid) {
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  sigset_t defaults;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, error_end, STDERR_FILENO);
  ::posix_spawnattr_init(&attributes);
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGINT);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const int failed = ::posix_spawnp(&pid, words[0], &files, &attributes, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  return failed;
}

// What it writes to standard error goes on to ours; the lines that Slurm says are looked at.
std::optional<Explained> pass_errors_on(int end) {
  std::optional<Explained> explained;
  LineCutter lines;
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::read(end, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return explained;
    const std::string_view bytes(buffer, static_cast<std::size_t>(got));
    (void)!::write(STDERR_FILENO, bytes.data(), bytes.size());
    lines.add(bytes, [&](const std::string& line) {
      if (line.starts_with("salloc:") && !explained) explained = explain_slurm(line);
    });
  }
}

}  // namespace

int in_allocation(const std::vector<std::string>& slurm_options, const std::vector<std::string>& words,
                  const std::function<bool()>& began) {
  const auto self = own_program();
  if (!self) return kExitInternal;
  std::vector<std::string> argv = {"salloc", "--job-name=scankit-fleet", "--no-kill"};
  argv.insert(argv.end(), slurm_options.begin(), slurm_options.end());
  argv.push_back(*self);
  argv.insert(argv.end(), words.begin(), words.end());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return kExitInternal;
  const Descriptor read_end(ends[0]);
  Descriptor write_end(ends[1]);
  const Signals signals;
  pid_t pid = -1;
  if (const int failed = spawn(argv, write_end.get(), pid); failed != 0) {
    complain({Errc::NotFound, say("cannot start {}: {}", "salloc", std::strerror(failed)), ""});
    return kExitUsage;
  }
  salloc_pid = pid;
  write_end = Descriptor();
  const auto explained = pass_errors_on(read_end.get());
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (began()) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  const std::string sentence = explained ? explained->sentence : say("see what salloc says above");
  complain({Errc::ToolFailed, say("Slurm gave no allocation"), sentence});
  return explained ? explained->exit_status : kExitInconclusive;
}

}  // namespace scankit::fleet
