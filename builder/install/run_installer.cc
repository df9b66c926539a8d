// SPDX-License-Identifier: Apache-2.0
#include "builder/install/run_installer.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "builder/install/interruption.h"
#include "doctor/base/say.h"

extern char** environ;

namespace scankit {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

// Ours come first: of two equal names getenv takes the first.
std::vector<std::string> variables(const InstallerCommand& command) {
  std::vector<std::string> all = command.environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string entry = *variable;
    bool replaced = false;
    for (const std::string& own : command.environment)
      replaced = replaced || entry.starts_with(own.substr(0, own.find('=') + 1));
    if (!replaced) all.push_back(entry);
  }
  return all;
}

// Only what may be called between fork and exec: our threads, if any, are not in the child.
[[noreturn]] void become(const InstallerCommand& command, char* const* argv, char* const* envp, int lock,
                         pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died before that was set
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  if (lock >= 0) ::fcntl(lock, F_SETFD, 0);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(number, SIG_DFL);
  if (!command.folder.empty() && ::chdir(command.folder.c_str()) != 0) ::_exit(126);
  ::execve(argv[0], argv, envp);
  ::_exit(127);
}

// A signal of ours alone (not the terminal's Ctrl-C, which it gets itself) is passed on.
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

Result<void> run_installer(const InstallerCommand& command, int lock) {
  const auto argv = pointers(command.argv);
  const auto words = variables(command);
  const auto envp = pointers(words);
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0)
    return Error{Errc::Io, say("cannot start {}: {}", command.argv[0], std::strerror(errno)), ""};
  if (child == 0) become(command, argv.data(), envp.data(), lock, parent);
  const int status = wait_for(child);
  SCANKIT_CHECK(Interruption::check());
  if (WIFSIGNALED(status))
    return Error{Errc::ToolFailed, say("`{}` died of signal {}", shown(command), WTERMSIG(status)), ""};
  if (WEXITSTATUS(status) == 127) return Error{Errc::ToolFailed, say("cannot start {}", command.argv[0]), ""};
  if (WEXITSTATUS(status) != 0)
    return Error{Errc::ToolFailed, say("`{}` ended with status {}", shown(command), WEXITSTATUS(status)),
                 say("what it said stands above")};
  return {};
}

}  // namespace scankit
