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

// What the parsed command lines do; cli.cc parses.

namespace scankit {

// --module with a name that nothing here has and scankit does not know: a slip of the keyboard, most likely.
// Nothing where each name means something, or where the environment could not be read.
std::optional<Error> meaningless_module(const Snapshot& snapshot);

// The causes whose texts hold the words of `query`, the best first: those with all words before those with
// some, then by where a word is found (slug, title, error lines, explanation, repair).
std::vector<const FaultClass*> search_causes(const std::string& query);

// "did you mean X?" of a mistyped slug; where none is near, how to list them all.
std::string cause_hint(const std::string& wanted);

struct EnvironmentOptions {
  bool all = false;                   // every compiled extension of the environment too
  bool linked = false;                // of these, the ones that link torch or CUDA
  std::vector<std::string> required;  // --require
  std::string python;                 // "" where the user named none
  std::vector<std::string> modules;   // as named by the user
  std::string sources;                // --sources
  ImportPolicy imports = ImportPolicy::IfOursToRun;
  bool foreign_too = true;  // the command's --import runs another user's code as root
  double timeout_s = 60;
  std::vector<std::string> so;  // files, wheels and folders to examine instead of installed modules
  bool with_exports = false;    // into the snapshot: also the names of torch's libraries
  std::string root;             // an unpacked file system; "" looks at the running one
  bool ask_nvml = true;         // start the helper that loads the driver's NVML
  std::string budget;           // for the whole run, "20s"; "" for none
  bool redact = false;          // errors too: they name paths
};

struct DoctorOptions {
  EnvironmentOptions environment;
  TargetDescription target;  // --gpu, --driver
  std::string log;           // an error log, "-" for standard input; "" for none
  std::string from;          // a snapshot file, "-" for standard input; "" looks at this machine
  bool allow_empty = false;
  std::string snapshot;  // where to write the facts that the answer rests on; "" for nowhere
  ShowOptions show;
};
int run_doctor(const DoctorOptions& options);

struct SnapshotOptions {
  EnvironmentOptions environment;
  std::string out;  // "" or "-": standard output
};
int run_snapshot(const SnapshotOptions& options);

// A slug, words to search for, or a pasted error message; "" lists all causes.
int run_explain(const std::string& asked);

struct SelftestOptions {
  std::string python;
  bool json = false, keep = false;
};
int run_selftest_command(const SelftestOptions& options);

// What both commands stand on. `status` is kExitUsage where --sources names no folder of sources; the
// snapshot then still holds everything else.
struct Facts {
  Snapshot snapshot;
  std::vector<std::string> notes;  // which Python was chosen, and which others hold torch
  int status = 0;
  // The budget ended while the files were read, in a thread that still is: nothing of this process may be
  // taken down, it has to leave by _exit().
  bool abandoned = false;
};
// An Error: what --python or --so names cannot be examined.
Result<Facts> gather(const EnvironmentOptions& options);

// A snapshot file, "-" for standard input.
Result<Snapshot> stored_snapshot(const std::string& path);

Result<void> join_named_files(const std::vector<std::string>& so, Snapshot& snapshot);

// `found`: with which a finding at or above --fail-on ends the run.
// `allow_empty`: that there was nothing to look at is no reason to fail.
int exit_status_of(const Report& report, const std::string& fail_on, int found = kExitFindings,
                   bool allow_empty = false);
int first_that_counts(std::initializer_list<int> statuses);  // the precedence of exit_status.h
void report_error(const Error& error);                       // one line to standard error
// The same, without the names of this machine where `redact` says so.
void report_error(const Error& error, bool redact);
int exit_status_of(const Error& error);  // of a file that the user named

}  // namespace scankit
