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
  std::uint64_t bytes = 0;   // of its output that passed through us
  std::string output;        // what was kept of it
  std::vector<SeenInterpreter> interpreters;
  std::uint64_t memory_kills = 0;  // processes that were killed meanwhile because memory ran out
  std::string crashed_in;          // the file in which a process crashed, as the kernel's log names it
};

// Runs the user's command as if it had been typed without scankit, and waits until it has ended. What it
// writes reaches our own standard streams unchanged. To be called before the process has threads.
std::variant<CommandRun, NotStarted> run_command(const std::vector<std::string>& words);

}  // namespace scankit
