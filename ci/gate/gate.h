// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ci/gate/policy.h"
#include "doctor/base/message.h"
#include "doctor/base/result.h"
#include "doctor/cli/reports.h"
#include "doctor/model/finding.h"
#include "doctor/model/snapshot.h"

namespace CLI {
class App;
}  // namespace CLI

// What the parsed command lines of `scankit ci` do; cli.cc parses.
namespace scankit::gate {

// The steps of a gate as child processes, and what their answers mean for the report.

// How a child of the gate ended. Its answer is in a file of its own.
struct StepEnd {
  int status = -1;  // of exit_status.h, where it exited
  int signal = 0;
  bool timed_out = false;
  double seconds = 0;
  std::string last_words;   // the last line that it wrote to stderr
  bool has_answer() const;  // it came to an end at which an answer is written
};

struct StepCommand {
  std::string name;               // "env check"
  std::string stem;               // "env-check": its files are DIR/env-check.json and DIR/env-check.step.json
  std::vector<std::string> argv;  // argv[0] is our own program
  std::string answer_option;  // the file that the child itself writes is named by this option; "": its stdout
  std::chrono::milliseconds timeout{0};
  std::string key;  // of everything that the answer depends on
};

std::string answer_file(const std::string& folder, const StepCommand& command);

// What a former run of the same command, of the same inputs, left in the folder: nothing where it has not
// come to its end, or where anything differs or is not whole.
std::optional<StepEnd> finished_before(const std::string& folder, const StepCommand& command);

// Runs the step, then stores its answer, and last how it ended: where the second file exists, the
// first is complete.
Result<StepEnd> run_step(const std::string& folder, const StepCommand& command);

// What a CI server shows next to the log. On GitHub that is the Markdown on the job's page
// ($GITHUB_STEP_SUMMARY) and, with `to_stdout`, annotations as workflow commands; on other servers
// nothing. Returns the exit status that it comes to.
int tell_job_page(const Report& report, int exit_status, bool to_stdout);

// The answer of `scankit validate --json` as questions and findings: one for each device, one for the
// comparison of speed, one for what could not be run.
Result<std::vector<Outcome>> validate_outcomes(std::string_view json);

// That a module does not import is one fault: where doctor names its cause, validate's word of it is taken
// out, so that what the policy says of the cause decides.
void leave_import_to_doctor(const std::vector<Outcome>& doctor, std::vector<Outcome>& validate);

struct GateOptions {
  std::string policy;  // "": scankit-ci.yaml of this folder, where it is there
  std::string python;
  std::string out;  // the folder of the steps' answers; "": a temporary one
  bool resume = false, no_import = false, import_foreign = false, allow_empty = false;
  std::vector<std::string> required;
  std::string budget;
  cli::ShowOptions show;
};
int run_gate(const GateOptions& options);

int run_policy_schema();

// The exit status of several steps: an internal error (3) outranks wrong usage (2), then comes the first
// of 1, 5, 6 and 7, then inconclusive (4), then 0.
int gate_status(const std::vector<int>& steps);

// The plan of a run: the command line of each step, and whether it is run at all. This one gives the
// command line without the option that names the answer's file. `program` is the path of this executable.
StepCommand step_command(const PolicyStep& step, const Policy& policy, const GateOptions& options,
                         const std::string& program);
// The commands of a step: one, but for "record", which has one for each environment, and none without any.
std::vector<StepCommand> step_commands(const PolicyStep& step, const Policy& policy,
                                       const GateOptions& options, const std::string& program);

// Why a step has nothing to look at here, in one sentence; empty where it has. What the policy demands
// (enabled: true) always has. `seen`: the machine, once doctor has told, else nullptr.
Message nothing_to_do(const PolicyStep& step, const Policy& policy, const GateOptions& options,
                      const Snapshot* seen);

// A hash of everything that an answer depends on: the policy, this program, the command line, the files
// that it names, and the environment (`environment` comes from environment_identity()). --resume takes an
// answer with the same key.
std::string step_key(const StepCommand& command, const Policy& policy, const std::string& policy_text,
                     const std::string& program_hash, const std::string& environment);

// A hash of what the static facts tell of an environment: interpreter, packages, torch, compiled files with
// their times, GPUs, driver, variables. Runs nothing of it.
std::string environment_identity(const std::string& python, const std::vector<std::string>& modules);

struct CiInitOptions;

// The scankit that a pipeline fetches: a path or a URL with a hash, never a name that an index resolves,
// since anybody could publish a package of that name.
struct ScankitSource {
  std::string where;    // a URL, or a path in the repository (or an absolute one, on the runner)
  std::string sha256;   // the only bytes that the pipeline installs or runs
  bool absent = false;  // a path at which the user has yet to put this program
};
inline constexpr const char* kCommittedScankit = ".scankit/scankit";

// What --scankit and --sha256 say; without --scankit, a copy of this program at kCommittedScankit.
Result<ScankitSource> scankit_source(const CiInitOptions& options);

// `text` as a scalar of YAML on one line.
std::string yaml_quoted(const std::string& text);
// As a literal of Groovy.
std::string groovy_quoted(const std::string& text);
// Every line of a script, without the comments at its top, in the place of "@NAME@" on a line of its own and
// as far to the right as that.
std::string with_script(std::string text, const std::string& name, std::string_view script);

// The file that install-environment.sh will install from in this folder, in its order; "" for none.
std::string environment_file(const std::string& folder);

// `scankit ci init KIND`: files to start from, out of ci/templates.
const std::vector<std::string_view>& template_kinds();

struct CiInitOptions {
  std::string kind;
  std::string out = ".";               // the folder they are written into
  bool force = false;                  // over files that are there; a policy that is there stays
  std::optional<std::string> scankit;  // of a pipeline: the program or its wheel, a path or a URL
  std::string sha256;                  // of that file; "": it is read, where it is there
};
int run_ci_init(const CiInitOptions& options);

// scankit ci ... `exit_status` is set when a command of these runs.
void add_ci_commands(CLI::App& app, int& exit_status);

}  // namespace scankit::gate
