// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doctor/model/finding.h"
#include "doctor/model/snapshot.h"

// What several sinks say in the same words, and the words that programs read.

namespace scankit::report {

// For programs: JSON and the classes of HTML. These words are never translated.
std::string_view verdict_word(Verdict verdict);       // "healthy", "broken", "unknown", "empty"
std::string_view verdict_word(const Report& report);  // the same, or of a drift: "clean", "drift", "unknown";
                                                      // of a gate: "passed", "failed", "unknown"
std::string_view command_of(const Report& report);    // "doctor", "env check", "ci run"
std::string_view severity_word(Severity severity);    // "error", "warning", "note"

// The same for people, in their language.
std::string severity_name(Severity severity);  // the same for people

std::string python_in_words(const Python& python);
std::string gil_in_words(const Snapshot& snapshot);  // "" where nothing was said about it
std::string torch_in_words(const Torch& torch);

// The verdict as a sentence, "the environment is broken: the module was built against another torch release
// (torch_version_mismatch)", and the numbers that follow it, "1 error; 27 checks passed".
std::string verdict_line(const Report& report);
std::string counts_line(const Report& report);

// What the answer is about, if that is not this machine with its installed files: a sentence each about a
// stored snapshot, an unpacked root, named files, a described GPU or driver, and a log alone.
std::vector<std::string> target_lines(const Snapshot& snapshot);

// The files that a drift or a gate was given: "compared with the spec scankit.yaml".
std::vector<std::string> compared_lines(const Report& report);

// Each step of a gate, and how it ended: "doctor", "status 1, 0.52 s".
std::vector<std::pair<std::string, std::string>> step_rows(const Report& report);

// What was looked at, as name and value: Python, torch, GPU, driver, system. For a fact that could not be
// read, the value is the reason.
std::vector<std::pair<std::string, std::string>> versions(const Snapshot& snapshot);

// The command of a fix, or its sentence if there is no command.
std::string fix_or_command(const Fix& fix, const Snapshot& snapshot);

// Whether the check's question is open, if only in part.
bool is_open(const Outcome& outcome);

// Questions that were not looked into although something could be wrong, each with the reason.
std::vector<std::pair<std::string, std::string>> not_checked(const Report& report);
// Questions that had nothing to look at, without those for which the user gave no input.
std::vector<std::pair<std::string, std::string>> not_applicable(const Report& report);

// The group of a check: "torch" for "torch-has-cuda" (the table in words.cc).
std::string_view family(std::string_view check);

// How the user starts this program: "scankit" if it is on PATH, else the path that was typed, so that a
// printed command works in the same shell. Quoted for a shell.
const std::string& scankit_program();
void set_scankit_program(const std::string& argv0);

}  // namespace scankit::report
