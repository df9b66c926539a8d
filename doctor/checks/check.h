// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "doctor/model/finding.h"

namespace scankit {

// The facts that a check stands on. The runner looks whether they are there, so that no check can pass
// without them.
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

struct CheckResult {
  std::vector<Finding> findings;
  std::vector<std::string>
      unknown;  // broken or undecidable in a way that no catalogued cause covers, one line each
  std::vector<std::string> not_checked;  // parts that had nothing to look at, one line each
};

// One statement about the environment; true means healthy. A pure function of the snapshot.
struct Check {
  std::string_view id;  // kebab-case of the file's name
  std::string_view question;
  unsigned needs = 0;
  bool confirmed_by_import = false;  // an observed import of the module answers it, whatever the files say
  std::string (*not_applicable)(const Snapshot&) =
      nullptr;  // why there is nothing to look at; "" where there is
  CheckResult (*run)(const Snapshot&) = nullptr;
  // Whether the user gave what it looks at (a log, a wheel): where not, nobody waits for the answer, and the
  // reports for people leave the question out. nullptr: always.
  bool (*asked)(const Snapshot&) = nullptr;
  // Where the check does not apply: what was left out all the same, and how one has it looked at; "" where
  // there is nothing that could be wrong. Only what was left out is told to people as "not checked".
  std::string (*left_out)(const Snapshot&) = nullptr;
};

// Every check of checks.def, in its order.
const std::vector<const Check*>& all_checks();

struct Check;

// Every check over the snapshot, weighed against the imports that were attempted and the log, with the root cause decided.
Report diagnose(Snapshot snapshot);

// The steps of diagnose().
Outcome run_check(const Check& check, const Snapshot& snapshot);
void reconcile(Report& report);
void join_log(Report& report);  // one finding where the log and the facts name the same cause

}  // namespace scankit
