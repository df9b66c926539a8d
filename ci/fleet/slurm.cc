// SPDX-License-Identifier: Apache-2.0
#include "ci/fleet/slurm.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "ci/fleet/commands.h"
#include "ci/fleet/node_result.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/cli/commands.h"

extern char** environ;

// Slurm's commands: what they say about a cluster, what their error messages mean, and running inside a
// new allocation. slurm_launch.cc runs the nodes.
namespace scankit::fleet {
namespace {

// The output of one command. Its first line of errors is the reason where it fails.
Result<std::string> said_by(std::vector<std::string> argv) {
  ProcessRequest request;
  request.argv = std::move(argv);
  request.output_limit = 64u << 20;
  SCANKIT_TRY(const auto ran, run_process(request));
  if (ran.ok()) return ran.out;
  const std::string why = ran.timed_out ? say("it did not respond within 30 s") : ran.err;
  return Error{Errc::ToolFailed,
               message("{} failed: {}", request.argv.front(), why.substr(0, why.find('\n'))),
               message("check \"scontrol ping\"")};
}

// A message of Slurm's, what to do about it, and the exit status that it comes to.
struct Known {
  std::string_view text;  // what Slurm's line holds, in lower case
  std::string_view next;
  int exit_status;
};

// Slurm's own words (src/common/slurm_errno.c, src/srun, src/slurmd of 20.11 to 25.05).
constexpr Known kKnown[] = {
    {"invalid partition", sayable("the partition does not exist: \"sinfo -s\" lists the partitions"),
     kExitUsage},
    {"invalid account",
     sayable("Slurm does not know the account: \"sacctmgr show associations user=$USER\" lists yours"),
     kExitUsage},
    {"invalid qos",
     sayable("Slurm does not know the QOS: \"sacctmgr show associations user=$USER\" lists yours"),
     kExitUsage},
    {"group not permitted",
     sayable("you may not use this partition: choose another with -p, or ask its "
             "owner"),
     kExitUsage},
    {"permission denied",
     sayable("Slurm does not permit this: choose another partition with -p, or ask its owner"), kExitUsage},
    {"violates accounting/qos", sayable("the job requests more than its account or QOS allows: request less"),
     kExitUsage},
    {"node configuration is not available",
     sayable("no node matches the options: \"sinfo -N -l\" lists the available ones"), kExitUsage},
    {"partition configuration not available",
     sayable("the partition cannot provide that now: request less, or omit --immediate"), kExitInconclusive},
    {"node count specification invalid",
     sayable("the partition does not have that many nodes: see \"sinfo -s\""), kExitUsage},
    {"invalid node name", sayable("Slurm does not know a node with that name: \"sinfo -N\" lists all"),
     kExitUsage},
    {"unrecognized option", sayable("arguments between --slurm and -- must be valid salloc options"),
     kExitUsage},
    {"invalid option", sayable("arguments between --slurm and -- must be valid salloc options"), kExitUsage},
    {"unable to contact slurm controller",
     sayable("Slurm's controller does not respond: see \"scontrol ping\""), kExitInconclusive},
    {"slurm_conf", sayable("Slurm is not configured here: run this on a login node of the cluster"),
     kExitUsage},
    {"slurm.conf", sayable("Slurm is not configured here: run this on a login node of the cluster"),
     kExitUsage},
    {"munge", sayable("Slurm could not authenticate you: is munged running, here and on the nodes?"),
     kExitInconclusive},
    {"due to time limit",
     sayable("the allocation's time limit was reached: request more with --time, and run the same command "
             "again for the nodes that have not answered"),
     kExitInconclusive},
    {"due to preemption",
     sayable("the allocation was revoked: run the same command again for the nodes that have not answered"),
     kExitInconclusive},
    {"has been revoked",
     sayable("the allocation was revoked: run the same command again for the nodes that have not answered"),
     kExitInconclusive},
    {"force terminated",
     sayable("the allocation was revoked: run the same command again for the nodes that have not answered"),
     kExitInconclusive},
    {"cancelled at",
     sayable("the allocation was revoked: run the same command again for the nodes that have not answered"),
     kExitInconclusive},
    {"nodes are busy",
     sayable("another step occupies the nodes of this job: end it, or add --overlap after --slurm"),
     kExitInconclusive},
    {"job has been cancelled", sayable("the request was withdrawn before Slurm granted it"),
     kExitInconclusive},
};

}  // namespace

std::optional<SlurmJob> current_job() {
  const std::string id = environment_value("SLURM_JOB_ID"), nodes = environment_value("SLURM_JOB_NODELIST");
  if (id.empty() || nodes.empty()) return std::nullopt;
  return SlurmJob{id, nodes};
}

Result<std::vector<std::string>> host_names(const std::string& list) {
  SCANKIT_TRY(const std::string text, said_by({"scontrol", "show", "hostnames", list}));
  std::vector<std::string> names;
  std::istringstream lines(text);
  for (std::string name; lines >> name;) names.push_back(name);
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());  // clang 14 does not read ranges::unique
  return names;
}

// %N|%T|%E: name, state in its long form, and the reason that an administrator gave. An error of sinfo is
// ignored: the launch itself will show which nodes work.
std::map<std::string, std::string> unusable_nodes(const std::vector<std::string>& nodes) {
  std::map<std::string, std::string> unusable;
  if (nodes.empty()) return unusable;
  const auto text =
      said_by({"sinfo", "--noheader", "--Node", "--nodes", join(nodes, ","), "--format", "%N|%T|%E"});
  if (!text) return unusable;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find('|'), second = line.find('|', first + 1);
    if (second == std::string::npos) continue;
    const std::string state = line.substr(first + 1, second - first - 1), reason = line.substr(second + 1);
    // "*": it does not answer the controller (sinfo(1), NODE STATE CODES).
    const bool usable =
        !state.ends_with('*') &&
        std::ranges::none_of(std::initializer_list<std::string_view>{"down", "drain", "fail", "power", "unk",
                                                                     "future", "reboot"},
                             [&](std::string_view bad) { return state.starts_with(bad); });
    if (!usable) unusable[line.substr(0, first)] = reason == "none" ? state : state + ": " + reason;
  }
  return unusable;
}

// Both commands must work: srun starts the nodes, and scontrol expands their names.
Result<void> slurm_is_here() {
  const auto version = said_by({"srun", "--version"});
  if (version && said_by({"scontrol", "--version"})) return {};
  if (!version && version.error().code != Errc::NotFound) return version.error();
  return Error{Errc::NotFound, message("srun and scontrol are not on PATH"),
               message("run this on a login node of a Slurm cluster, load its module first, or use --k8s")};
}

std::optional<Explained> explain_slurm(std::string_view line) {
  std::string lower(line);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  for (const Known& known : kKnown)
    if (lower.find(known.text) != std::string::npos) return Explained{said(known.next), known.exit_status};
  return std::nullopt;
}

namespace {

// Read by a signal handler. A pid fits into sig_atomic_t (int) on Linux.
volatile std::sig_atomic_t salloc_pid = 0;

void pass_on(int signal) {
  if (salloc_pid > 0) ::kill(static_cast<pid_t>(salloc_pid), signal);
}

// While salloc runs, this process ignores SIGINT and passes SIGTERM on. salloc stays in its process group
// and on its terminal, unlike the children of run_process(): it must get the user's Ctrl-C itself and give
// the allocation back, also after this process was killed.
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

// SIGINT is reset to its default in the child: an ignored signal would stay ignored there (POSIX exec),
// and Ctrl-C would not reach salloc.
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

// Copies salloc's standard error to that of this process, and looks at the lines that Slurm itself wrote.
// The first one with a known meaning counts.
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

// --no-kill keeps the allocation when one of its nodes fails. If the program ran, its status is the
// answer; otherwise the reason is in what salloc said.
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
    cli::report_error({Errc::NotFound, message("cannot start {}: {}", "salloc", std::strerror(failed)), ""});
    return kExitUsage;
  }
  salloc_pid = pid;
  write_end = Descriptor();
  const auto explained = pass_errors_on(read_end.get());
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (began()) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  const std::string sentence = explained ? explained->sentence : say("see the output of salloc above");
  cli::report_error({Errc::ToolFailed, message("Slurm gave no allocation"), sentence});
  return explained ? explained->exit_status : kExitInconclusive;
}

}  // namespace scankit::fleet
