// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "doctor/base/message.h"

// The command of `scankit run` that failed, and what was seen of it. Filled by doctor/cli.
namespace scankit {

struct CommandInterpreter {
  std::string path, directory;
  bool other_root = false;           // it ran in a container
  std::vector<std::string> modules;  // compiled modules that were loaded last, the last one first
};

// Where Python was when it failed, as its traceback or faulthandler tells.
struct CommandPlace {
  std::string file;
  unsigned line = 0;
  std::string function, source;
  bool importing = false;
  std::string module;  // what was imported; "" where it is not known
};

struct RanCommand {
  std::vector<std::string> words;
  std::string directory;
  std::optional<int> exit_status;  // empty where a signal ended it
  int signal = 0;                  // that ended it, or that it reported as 128 + N; 0 for none
  Message end;                     // both in a sentence, with what they mean
  std::uint64_t duration_ms = 0;
  std::uint64_t output_bytes = 0;  // as far as it passed through scankit or is in a file
  bool output_cut = false;         // only its end and the first error were kept
  std::uint64_t memory_kills = 0, memory_kills_of_machine = 0;
  std::string crashed_in;  // the file that the kernel's log names
  std::string examined;    // the Python whose facts were read; "" where only the output was
  std::vector<std::string> programs;
  std::vector<CommandInterpreter> interpreters;
  std::optional<CommandPlace> at;
};

}  // namespace scankit
