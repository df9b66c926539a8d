// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doctor/model/finding.h"
#include "doctor/model/why_missing.h"

// What several sinks say in the same words.

namespace scankit {

// For programs: JSON, classes of HTML.
std::string_view verdict_word(Verdict verdict);       // "healthy", "broken", "unknown", "empty"
std::string_view verdict_word(const Report& report);  // the same, or of a drift: "clean", "drift", "unknown";
                                                      // of a gate: "passed", "failed", "unknown"
std::string_view command_of(const Report& report);    // "doctor", "env check", "ci run"
std::string_view severity_word(Severity severity);    // "error", "warning", "note"

std::string severity_name(Severity severity);  // the same for people

std::string python_in_words(const Python& python);
std::string torch_in_words(const Torch& torch);

// "broken: torch_version_mismatch", and "1 error, 0 warnings, ..." beside it.
std::string verdict_line(const Report& report);
std::string counts_line(const Report& report);

// What the answer holds for, where that is not this machine as it is: a sentence each about a stored
// snapshot, an unpacked root, named files, a described GPU or driver, a log alone.
std::vector<std::string> target_lines(const Snapshot& snapshot);

// The files of a drift, and of a gate: "compared with the spec scankit.yaml".
std::vector<std::string> compared_lines(const Report& report);

// Each step of a gate, and how it ended: "doctor", "status 1, 0.52 s".
std::vector<std::pair<std::string, std::string>> step_rows(const Report& report);

// What was looked at, as name and value: Python, torch, GPU, driver, system. What could not be read says why.
std::vector<std::pair<std::string, std::string>> versions(const Snapshot& snapshot);

// The command of a fix, or what it says where a program has none.
std::string fix_or_command(const Fix& fix, const Snapshot& snapshot);

// Whether the check's question stays open, be it only in part.
bool is_open(const Outcome& outcome);

// Question and why: of what is here, or could be, and was not looked at.
std::vector<std::pair<std::string, std::string>> not_checked(const Report& report);
// And of what had nothing to look at; without what the user gave no input for.
std::vector<std::pair<std::string, std::string>> not_applicable(const Report& report);

// The group of checks that "torch-has-cuda" belongs to: "torch". families.def.
std::string_view family(std::string_view check);

// How the user starts this program: "scankit" from PATH, else the path that was typed, so that a printed
// command works in the same shell.
const std::string& scankit_program();
void set_scankit_program(const std::string& argv0);

}  // namespace scankit
