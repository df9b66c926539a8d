// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/cli/commands.h"
#include "doctor/model/failure.h"
#include "doctor/run/supervise.h"

namespace CLI {
class App;
}  // namespace CLI

// scankit run: the user's command, and a diagnosis if it fails.
namespace scankit::cli {

struct RunOptions {
  std::vector<std::string> command;
  std::string python;  // the interpreter to diagnose; "" for the one that failed
  std::string log;     // where to write the kept output
  std::string json;    // where to write the report as JSON
  bool redact = false;
  probes::ImportPolicy imports = probes::ImportPolicy::IfOursToRun;
  ShowOptions show;  // without `json` and `fail_on`
};
// Returns the command's exit status. If a signal ended the command, this process ends by the same signal.
int run_run(const RunOptions& options);

// Adds the command. `words` is the command line behind the program's name: what follows "--" belongs to the
// user's command and is taken out of it.
void add_run_command(CLI::App& app, int& exit_status, std::vector<std::string>& words);

// What the failure of a command was, decided from its output, its end and the processes that were seen. Pure
// functions; doctor/cli/run.cc examines and prints.

enum class FailureKind {
  OfInstallation,  // the output contains an error that can be one of the installation
  Crash,           // native code crashed, and the output has no better reason
  OfProgram        // the program's own: nothing is examined
};
FailureKind kind_of_failure(const run::CommandRun& run, const Log& log);

// The error of the output that decides; nullptr if the rules know none.
const LogHit* root_hit(const Log& log);

// The signal that ended the command, also if a shell has turned it into 128 + N; 0 for none.
int signal_of(int status);
// "exited with status 1", "was ended by signal 11 (Segmentation fault) in x.so"
Message end_in_words(const run::CommandRun& run);
// The same as a sentence, with what is known of the reason: the kernel's, an error's of the output that is no
// fault of the installation, or that of a program such as timeout and docker.
Message end_of_command(const std::vector<std::string>& words, const run::CommandRun& run, const Log& log);
// The one line about a failure of the program.
Message no_fault_line(const std::vector<std::string>& words, const run::CommandRun& run, const Log& log);

// Whether a scankit that is the command, or below it, has explained the failure already on the same screen.
bool is_explained(const std::vector<std::string>& words, const std::string& output);

// Gives the hits of the log the dotted names by which the doctor knows their modules ("torchvision._C").
void name_modules(Log& log);
// "sh: 1: X: not found" is taken for the shell of a package. Where the command itself is, or starts, a shell that ended with
// its status for that, X is what the user wrote: the hit is left without a cause.
void excuse_own_shell(const std::vector<std::string>& words, const run::CommandRun& run, Log& log);
// The modules to look at for an error in the output; empty for the doctor's own choice.
std::vector<std::string> modules_of_error(const Log& log);
// The modules that a process may have crashed in: the one that the kernel's log names, else the ones that it
// had loaded last.
std::vector<std::string> modules_of_crash(const run::CommandRun& run);
// The first of them if it is the file that the kernel's log names; "" otherwise.
std::string module_of_crash_file(const run::CommandRun& run);

// What the report has of a command that failed: its words, its end, and what was seen of it. `directory` is
// the one in which it was started. `examined` stays empty: it is known later.
RanCommand command_facts(const std::vector<std::string>& words, const std::string& directory,
                         const run::CommandRun& run, const Log& log);

}  // namespace scankit::cli
