// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "doctor/model/finding.h"

namespace scankit::checks {

// The facts that a check depends on. The runner makes sure that they are present, so that no check passes
// because a fact is missing.
enum Fact : unsigned {
  kGpus = 1u << 0,
  kPython = 1u << 1,
  kTorch = 1u << 2,
  kExtensions = 1u << 3,
  kImporters = 1u << 4,
  kContents = 1u << 5,   // the selected copy of every module could be read
  kImages = 1u << 6,     // and is a whole library
  kClosures = 1u << 7,   // and is one for this machine, and its closure was walked
  kLog = 1u << 8,        // an error log was given
  kSources = 1u << 9,    // a folder of sources to build
  kPackages = 1u << 10,  // the Python packages around the modules were read
};

// What a check returns. All three empty means that it has passed.
struct CheckResult {
  std::vector<Finding> findings;
  std::vector<Message>
      unknown;  // broken or undecidable in a way that no catalogued cause covers, one line each
  std::vector<Message> not_checked;  // parts that had nothing to look at, one line each
  std::vector<Message> remarks;      // what to say although nothing is wrong, one line each
};

// One statement about the environment, true if the environment is healthy. `run` is a pure function of
// the snapshot. The constant is defined in the file of its family and listed in checks.def; README.md
// says how to add one.
struct Check {
  // The constant in kebab case: kFileIsWhole is "file-is-whole". It is part of the JSON and
  // never changes.
  std::string_view id;
  std::string_view question;
  unsigned needs = 0;
  bool confirmed_by_import = false;  // an observed import of the module answers it, whatever the files say
  Message (*not_applicable)(const Snapshot&) = nullptr;  // why there is nothing to look at; "" where there is
  CheckResult (*run)(const Snapshot&) = nullptr;
  // Whether the user gave what the check looks at (a log, a wheel). If not, nobody waits for the answer,
  // and reports for people leave the question out. nullptr: always.
  bool (*asked)(const Snapshot&) = nullptr;
  // If the check does not apply: what was left out although something could be wrong, and how to have
  // it looked at; "" if nothing could be wrong. Reports for people show only what was left out as
  // "not checked".
  Message (*left_out)(const Snapshot&) = nullptr;
};

// Every check, in the order of checks.def, which is also the order of the report.
const std::vector<const Check*>& all_checks();

// Runs every check on the snapshot, weighs the findings against the imports that were attempted and the log,
// and decides the root cause.
Report diagnose(Snapshot snapshot);

// The steps of diagnose(), in this order. run_check() never throws: a check that does is Crashed.
Outcome run_check(const Check& check, const Snapshot& snapshot);
void reconcile(Report& report);
void join_log(Report& report);  // one finding where the log and the facts name the same cause

// One place decides what a set of findings means: which of them is the cause of the others, in which order people deal with
// them, and what the verdict is. Checks say what is wrong with one statement, reconcile() weighs that against the imports that
// were attempted, join_log() against an error log; this function reads their outcomes and nothing else. Renderers print it.

// Fills report.findings (each symptom behind its cause, the root first) and report.verdict from report.outcomes and the
// snapshot. Repeatable: whoever adds, removes or weighs outcomes afterwards (a policy, a selection of modules) calls it again.
// No check sets `because_of`: it is decided here, by root_cause.def. One that was decided before is kept
// where that cause is still an error: that of a report that was read back, and of a symptom that a policy lowered.
void decide_root_cause(Report& report);

// The first half of it: the findings of all outcomes, the gravest first, each with the cause that it follows from. For
// apply_policy(), whose rules reach the symptoms of a cause before they change severities.
std::vector<Finding> linked_findings(const Report& report);

}  // namespace scankit::checks
