// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "doctor/base/process.h"
#include "doctor/report/document.h"
#include "doctor/selftest/faults.h"

// `scankit selftest`: plants each fault, asks the interpreter and the doctor, and judges the answer.
namespace scankit {

enum class Judgement : std::uint8_t {
  Named,       // the doctor named the planted cause, or rightly none
  Missed,      // it named another one, or none, or an alarm where nothing is wrong
  NotPlanted,  // the interpreter does not stumble over it: selftest itself is wrong here
  Failed,      // the doctor gave no answer
  Skipped      // could not be planted for this Python
};
std::string_view judgement_word(
    Judgement judgement);  // "named", "missed", "not-planted", "failed", "skipped"

struct Trial {
  std::string fault, planted, expected;  // expected: slug, "" where nothing is wrong
  Judgement judgement = Judgement::Skipped;
  std::string named;               // the doctor's root cause, else its verdict
  std::string why;                 // Skipped, Failed, NotPlanted
  std::string import_line;         // the interpreter's last line, "" where it was not asked
  std::vector<std::string> again;  // the doctor's command
};

// Judges one fault by the doctor's `--json` output and exit status. If the interpreter was asked
// (`imported`), it must agree that there is a fault.
Trial judge(const SelftestFault& fault, const std::optional<ProcessResult>& imported,
            const Result<ProcessResult>& doctor);

// 0: all named. 1: something was missed. 3: a fault was not planted, the doctor failed, or nothing was tried.
int exit_status_of(const std::vector<Trial>& trials);

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
