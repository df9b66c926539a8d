// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/host/host.h"
#include "doctor/model/finding.h"
#include "doctor/model/snapshot.h"
#include "envspec/spec/spec.h"

// What a spec and a lock are compared with: facts about an environment that is here, an unpacked root or a
// stored snapshot. Also the few functions by which the questions of both fill their Outcome.

namespace scankit::envspec {

// An outcome starts as Passed; the functions below change that.
inline Outcome asked(const char* check, Message question) {
  Outcome outcome;
  outcome.check = check;
  outcome.question = std::move(question);
  return outcome;
}

// A finding outranks a missing fact, but the reason is kept in both cases.
inline void not_known(Outcome& outcome, const Message& why) {
  if (outcome.state != CheckState::Found) outcome.state = CheckState::Unknown;
  outcome.could_hide_error = true;
  outcome.why = clauses_of({outcome.why, why});
}

inline void drifted(Outcome& outcome, Finding finding) {
  outcome.state = CheckState::Found;
  outcome.findings.push_back(std::move(finding));
}

// The question does not apply here, such as GPUs on a machine without one, and may apply
// on another machine.
inline void left_out(Outcome& outcome, const Message& why) {
  outcome.state = CheckState::NotApplicable;
  outcome.left_out = true;
  outcome.why = why;
}

// "scankit.yaml:12"
inline std::string line_name(const Spec& spec, const std::string& path) {
  const unsigned line = spec.line_of(path);
  return line == 0 ? spec.file : spec.file + ":" + std::to_string(line);
}

inline FileLine file_line(const Spec& spec, const std::string& path) {
  return {spec.file, spec.line_of(path)};
}

// As an installer reads it: "torch==2.11.*".
inline std::string requirement(const std::string& package, const VersionRange& range) {
  const std::string& text = range.text();
  const bool bare = !text.empty() && text[0] >= '0' && text[0] <= '9';
  return package + (bare ? "==" : "") + text;
}

// One extension: the copy that import takes. Where the file is not "elf", only its path and
// state are known.
struct ExtensionFacts {
  std::string module, path;
  std::string pointer;     // into the snapshot: "/extensions/value/0"
  std::string file_state;  // "elf"; in every other state nothing below is known
  std::string distribution, version;
  std::string torch_abi;               // "none", "stable", "full"
  std::string torch_min, torch_max;    // the releases of torch that it was built for; "" where that is open
  std::string string_abi, cuda_major;  // "" where the file does not say
  std::string python_tag, glibc_min;
  std::vector<std::string> code;  // "sm_90", "compute_75": cubins by number, then PTX
};

// The facts that specs, locks and diffs use. Absent is a fact of its own ("no GPU"), Failed and
// NotRun are unknown.
struct EnvironmentFacts {
  Probed<std::string> driver;             // "580.159.04"
  Probed<std::vector<std::string>> gpus;  // "sm_90", each once; Failed where one of them is of no known kind
  Probed<std::string> python, implementation;
  Probed<std::string> torch;                       // "2.11.0+cu130"
  Probed<std::string> cuda;                        // "13.0"; Absent for a CPU build
  Probed<std::string> string_abi;                  // "old", "new"
  std::vector<std::string> modules;                // that were looked for
  Probed<std::vector<ExtensionFacts>> extensions;  // the copies that import takes, by name
  Probed<std::vector<Compiler>> compilers;
  Probed<std::vector<Distribution>> distributions;
};

EnvironmentFacts facts_of(const Snapshot& snapshot);
// The kinds of device code in a file, each once: "sm_90", "compute_75"; cubins come before PTX.
std::vector<std::string> code_of(const std::vector<DeviceImage>& images);
// "x86_64". An unpacked root has no running kernel: there the processor is the one that its Python was
// built for. "" where neither is known.
std::string processor_of(const Snapshot& snapshot);

// Where the facts come from.
struct SubjectOptions {
  std::string python, root, from;    // at most one of root and from; "": as `doctor` chooses
  std::vector<std::string> modules;  // looked for in addition to those that scankit knows
  bool find_extensions = false;      // also every extension of the environment that uses torch
  bool needs_python = true;          // a machine without one gets a message
};

// An environment and its facts. A subject of a stored snapshot has no host, and so no files.
struct Subject {
  Snapshot snapshot;
  EnvironmentFacts facts;
  std::unique_ptr<Host> host;  // whose files may be read; none for a stored snapshot
  std::vector<Message> notes;  // for people: which Python was chosen
  int status = 0;  // kExitUsage where the Python that was named is none; everything else is then still there
};
// Nothing of the environment is run.
Result<Subject> look_at(const SubjectOptions& options);

// The spec's half of `scankit env check`: one Outcome for each question that the spec asks. Pure functions
// of the snapshot and its facts. A fact that could not be read gives Unknown, and never counts as a match.
std::vector<Outcome> check_spec(const Spec& spec, const Snapshot& snapshot, const EnvironmentFacts& facts);

// The parts of check_spec().
std::vector<Outcome> check_platform(const Spec& spec,
                                    const EnvironmentFacts& facts);  // Python, torch, driver, compiler
std::vector<Outcome> check_gpus(const Spec& spec, const Snapshot& snapshot, const EnvironmentFacts& facts);
Outcome check_extension(const Spec& spec, const ExtensionSpec& wanted, const EnvironmentFacts& facts);

}  // namespace scankit::envspec
