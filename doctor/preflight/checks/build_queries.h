// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "doctor/checks/snapshot_queries.h"

// What the checks of a source directory (--sources) ask of a snapshot, and the parts of their findings.
namespace scankit::preflight {

// Whether a line of a build file runs in this environment; nothing if one of its conditions is
// not understood.
std::optional<bool> runs_here(const Snapshot& snapshot, const SourceFact& fact);
// Indices of the facts on lines that certainly run.
std::vector<std::size_t> in_force(const Snapshot& snapshot, const std::vector<SourceFact>& facts);

// A finding about the directory, with its subject and module filled in. It is an error only if somebody
// needs the build (the directory was named, or what it builds is not installed), else a warning.
Finding build_finding(const Snapshot& snapshot, Cause cause, Message summary);

// For Check::asked: without sources nobody waits for an answer about builds.
bool sources_are_here(const Snapshot& snapshot);

// For Check::not_applicable: why there is nothing to ask, "" if there is.
Message needs_no_cuda(const Snapshot& snapshot);
Message needs_no_nvcc(const Snapshot& snapshot);  // also if there is none: kNvccFound says so
Message builds_no_python_module(const Snapshot& snapshot);

// How many compilers the memory is enough for, by what files of these sources usually take; at least 1, or 0 if the
// memory is not known.
std::uint64_t jobs_that_fit(const Snapshot& snapshot);

Evidence source_evidence(const std::string& list, std::size_t i, std::string value);
std::string place(const SourceFact& fact);  // "setup.py:12"
// "CUDA_HOME=... pip install --no-build-isolation FOLDER" for this environment.
std::string build_command(const Snapshot& snapshot, const std::string& variables = "");
// `otherwise`, followed by scankit's own module if the sources build that one, because it needs no build.
std::vector<Fix> build_fixes(const Snapshot& snapshot, Fix otherwise);
Message toolkit_advice(const Snapshot& snapshot, const std::string& version);
// Sets CUDA_HOME to an installed toolkit of the major version of `version` and adds the evidence for it;
// else the advice.
Fix toolkit_fix(const Snapshot& snapshot, const std::string& version, std::vector<Evidence>& evidence);
std::string major_of(const std::string& version);
std::string dotted(const std::string& arch);  // "120" -> "12.0"

}  // namespace scankit::preflight
