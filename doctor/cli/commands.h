// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "doctor/base/exit_status.h"
#include "doctor/base/result.h"
#include "doctor/cli/reports.h"
#include "doctor/knowledge/faults.h"
#include "doctor/model/finding.h"
#include "doctor/model/snapshot.h"
#include "doctor/probes/imports/observed.h"
#include "doctor/probes/target/target.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

// What the parsed command lines do; cli.cc parses.

namespace scankit::cli {

// An Error if --module names something that is not here and that scankit does not know: most likely a
// typing mistake. Nothing if every name has a meaning, or if the environment could not be read.
std::optional<Error> meaningless_module(const Snapshot& snapshot);

// The causes whose texts contain the words of `query`, the best first. Causes that contain the most words
// are returned, and no others; among them the place decides (slug, title, error lines, explanation,
// repair). Empty if half of the words or more are found nowhere.
std::vector<const knowledge::FaultClass*> search_causes(const std::string& query);

// "did you mean X?" for a mistyped slug; if none is near, how to list all causes.
std::string cause_hint(const std::string& wanted);

// What doctor and snapshot look at, and how. The defaults are those of doctor.
struct EnvironmentOptions {
  bool all = false;                   // every compiled extension of the environment too
  bool linked = false;                // of these, the ones that link torch or CUDA
  std::vector<std::string> required;  // --require
  std::string python;                 // "" where the user named none
  bool needs_python = true;           // a machine without one gets a message
  std::vector<std::string> modules;   // as named by the user
  std::string sources;                // --sources
  probes::ImportPolicy imports = probes::ImportPolicy::IfOursToRun;
  // Whether the command offers --import for code of another user, so that a message may suggest it.
  bool foreign_too = true;
  double timeout_s = 60;
  std::vector<std::string> so;  // files, wheels and folders to examine instead of installed modules
  bool with_exports = false;    // into the snapshot: also the names of torch's libraries
  std::string root;             // an unpacked file system; "" looks at the running one
  bool ask_nvml = true;         // start the helper that loads the driver's NVML
  bool gpu_details = false;     // and ask it and the CUDA driver for all that they tell of each GPU
  std::string budget;           // for the whole run, "20s"; "" for none
  bool redact = false;          // errors too: they name paths
};

// With --torch the files of --so are judged for a matrix of places, which these ranges span; "" for none.
struct AxisOptions {
  std::string torch, cuda, glibc;
};

struct DoctorOptions {
  EnvironmentOptions environment;
  probes::TargetDescription target;  // --gpu, --driver
  AxisOptions axes;                  // --torch, --cuda, --glibc
  std::string log;                   // an error log, "-" for standard input; "" for none
  std::string from;                  // a snapshot file, "-" for standard input; "" looks at this machine
  std::vector<std::string> pythons, snapshots;  // as given; of one, `environment.python` or `from` has it
  bool allow_empty = false;
  std::string snapshot;  // where to write the facts that the answer rests on; "" for nowhere
  ShowOptions show;
};
// What was found out about one environment. `status` is the exit status that this alone means.
struct Diagnosis {
  Report report;
  std::vector<Message> notes;
  int status = 0;
  bool abandoned = false;  // as in Facts
};
// An Error if there is nothing to judge: a Python or a snapshot that cannot be read.
Result<Diagnosis> diagnosis_for(const DoctorOptions& options);
// The end of a command; leaves the process at once where a thread was abandoned.
int leave(int status, bool abandoned);
int run_doctor(const DoctorOptions& options);
int run_doctors(const DoctorOptions& options);  // each of `pythons` or `snapshots` by itself
int run_matrix(const DoctorOptions& options);   // where axes.torch is given

struct SnapshotOptions {
  EnvironmentOptions environment;
  std::string out;  // "" or "-": standard output
};
int run_snapshot(const SnapshotOptions& options);

// A slug, words to search for, or a pasted error message; "" lists all causes.
int run_explain(const std::string& asked);

struct SelftestOptions {
  std::string python;
  bool keep = false;
  ShowOptions show;
};
int run_selftest_command(const SelftestOptions& options);

// The result of gather(). `status` is kExitUsage if --sources names a directory without sources; the
// snapshot still contains everything else.
struct Facts {
  Snapshot snapshot;
  std::vector<Message> notes;  // which Python was chosen, and which others hold torch
  int status = 0;
  // The budget ended while a thread was still reading files. That thread uses objects of this process, so
  // nothing may be destroyed: the caller must leave with _exit().
  bool abandoned = false;
};
// Chooses the Python, takes the snapshot and makes the imports that are allowed. An Error means that what
// --python or --so names cannot be examined; everything else that goes wrong is a fact of the snapshot.
Result<Facts> gather(const EnvironmentOptions& options);

// Reads a snapshot file, "-" for standard input.
Result<Snapshot> stored_snapshot(const std::string& path);

// Puts files of this machine (--so) in place of the modules of a stored snapshot (--from).
Result<void> join_named_files(const std::vector<std::string>& so, Snapshot& snapshot);

// The exit status for a report. `found` is the status for a finding at or above --fail-on. With
// `allow_empty`, having nothing to check does not make the run fail.
int exit_status_of(const Report& report, const std::string& fail_on, int found = kExitFindings,
                   bool allow_empty = false);
int first_that_counts(std::initializer_list<int> statuses);  // the precedence of exit_status.h
void report_error(const Error& error);                       // one line to standard error
// The same; with `redact`, without the names of this machine and its users.
void report_error(const Error& error, bool redact);
int exit_status_of(const Error& error);  // of a file that the user named

// Adds scankit doctor, snapshot, explain and selftest. `exit_status` is set when one of them runs.
void add_doctor_commands(CLI::App& app, int& exit_status);

// Adds --budget, the time limit of the whole run, to a command.
CLI::Option* add_budget_option(CLI::App& command, std::string& budget);

}  // namespace scankit::cli
