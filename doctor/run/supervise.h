// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/signalfd.h>
#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "doctor/base/files.h"
#include "doctor/run/command.h"
#include "doctor/run/interpreters.h"

namespace scankit::run {

// How a command ended, and what was seen of it.
struct CommandRun {
  int status = 0;            // of waitpid(2)
  bool interrupted = false;  // somebody sent it a signal to end: ^C, kill, a scheduler
  bool reader_gone = false;  // nobody reads its output any more
  bool within_line = false;  // the screen's cursor is within a line
  double seconds = 0;        // from its start to its end
  // The following is only known of a command that failed.
  KeptText output;
  std::vector<SeenInterpreter> interpreters;
  std::vector<std::string> programs;  // names of the programs that were seen running
  // Processes that were killed meanwhile because memory ran out: those of the command, and, if none of them
  // is known to be one, those of the machine.
  std::uint64_t memory_kills = 0, memory_kills_of_machine = 0;
  std::string crashed_in;  // the file in which a process crashed, as the kernel's log names it
};

// Runs the user's command as if it had been typed without scankit, and waits until it has ended. What it
// writes reaches our own standard streams unchanged. To be called before the process has threads.
std::variant<CommandRun, NotStarted> run_command(const std::vector<std::string>& words);

// The signals that somebody may send to the command by sending them to us.
const sigset_t& forwarded_signals();

// Whether a signal that somebody sent to us was sent to our whole process group, which the command is a
// member of. timeout(1), Slurm and container runtimes do that: the command has had it, and forwarding it
// would make two of one. A member of the group that only reports what it receives tells the cases apart.
class GroupWitness {
 public:
  GroupWitness();
  ~GroupWitness();
  GroupWitness(const GroupWitness&) = delete;
  GroupWitness& operator=(const GroupWitness&) = delete;
  bool received(int number);

 private:
  pid_t pid_ = -1;
  Descriptor reports_;
};

// Blocks what the event loop hears: the forwarded signals, SIGCHLD and SIGWINCH, which a descriptor gives
// out; and SIGPIPE, since a lost reader is an error of write(2) here. ^Z is not among them: it stops us
// together with the command.
struct HeardSignals {
  sigset_t before{};  // the mask for the command
  Descriptor descriptor;
};
HeardSignals hear_signals();
void stop_hearing(const HeardSignals& heard);

}  // namespace scankit::run
