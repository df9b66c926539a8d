// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "doctor/base/process.h"
#include "doctor/selftest/faults.h"

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

}  // namespace scankit
