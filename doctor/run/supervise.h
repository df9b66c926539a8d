// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "doctor/run/command.h"
#include "doctor/run/processes.h"

namespace scankit {

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

}  // namespace scankit
