// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "doctor/base/message.h"
#include "doctor/model/examined_files.h"

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

// What an error log says: its lines cleaned of terminal escapes, the rules that recognised them, and which of
// them decides. Filled by doctor/logs.

struct LogFact {
  std::string name, value;  // "symbol": "_ZN3c10...", "soname": "libcudart.so.12"
};
struct LogHit {
  std::string rule;   // id of a row of knowledge/log_rules.yaml
  std::string cause;  // slug; "" for an error that is no fault of the installation
  std::string
      role;  // "root", "other" (another error), "clue" (explains one), "warning" (of a run that goes on)
  std::string sure;                       // "certain", "likely", "possible"
  std::uint64_t line = 0;                 // from 1
  std::string text;                       // the line, cleaned
  Message meaning;                        // one sentence
  Message settles;                        // the fact that would make it certain, "" where it is
  std::string file;                       // the binary that the line blames, "" where it names none
  std::string module;                     // the module of that file
  std::vector<std::string> alternatives;  // slugs that the same line may also come from
  std::vector<LogFact> facts;
};
struct LogLine {
  std::uint64_t line = 0;
  std::string text;
};
struct Log {
  std::string source;  // file name, "-" for standard input
  bool alone = false;  // nothing but this log was looked at
  std::uint64_t bytes = 0, lines = 0;
  std::vector<LogHit> hits;          // the root first, then in the order of the log
  std::vector<BuiltFor> built_for;   // of files that it blames, by the torch names that it says they miss
  std::vector<LogLine> unexplained;  // lines that look like errors and that no rule knows
  // "ann@node17:~$" of shell prompts: whom redaction has to hide. In no snapshot and no report.
  std::vector<std::string> prompts;
};

}  // namespace scankit
