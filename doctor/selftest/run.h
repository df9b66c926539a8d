// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "doctor/report/sinks.h"
#include "doctor/selftest/judge.h"

namespace scankit {

// `folder` is empty at the start and stays for the caller to remove.
struct SelftestRequest {
  Snapshot facts;      // of the Python that the faults are planted for
  std::string folder;  // where; empty, and ours
  std::string self;    // the scankit under test
  bool import = true;  // also ask the interpreter, so that each fault is seen to be one
  std::function<void(const std::string& phase)> progress;  // may be empty
  std::function<bool()> stop;                              // asked between faults; may be empty
};

// Runs a command line. Unit tests pass a function that answers wrongly in its place.
using RunCommand = std::function<Result<ProcessResult>(const ProcessRequest&)>;

// Plants every fault in turn and asks the doctor about each. An Error means that the directory cannot be
// written or a program cannot be started; a wrong answer is a Trial.
Result<std::vector<Trial>> run_selftest(const SelftestRequest& request, const RunCommand& run = run_process);

// The table for people, and the same as JSON (doctor/report/schema/selftest-1.json).
std::string selftest_text(const SelftestRequest& request, const std::vector<Trial>& trials);
std::string selftest_json(const SelftestRequest& request, const std::vector<Trial>& trials);
// For every other format. Both arguments must outlive the views.
Document selftest_document(const SelftestRequest& request, const std::vector<Trial>& trials);
Views selftest_views(const SelftestRequest& request, const std::vector<Trial>& trials);

}  // namespace scankit
