// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "doctor/checks/snapshot_queries.h"

// What the checks of a folder of sources ask of a snapshot.
namespace scankit {

// Whether a line of a build file runs here; nothing where its conditions are not among those understood.
std::optional<bool> runs_here(const Snapshot& snapshot, const SourceFact& fact);
// Positions of the facts that certainly come to pass.
std::vector<std::size_t> in_force(const Snapshot& snapshot, const std::vector<SourceFact>& facts);

// A finding about the folder, with its subject and module. An error only where somebody needs the build: the
// folder was named, or what it builds is not installed; else a warning.
Finding build_finding(const Snapshot& snapshot, Cause cause, std::string summary);

// In any other folder nobody waits for an answer about builds.
bool sources_are_here(const Snapshot& snapshot);

// Why there is nothing to ask; "" where there is.
std::string needs_no_cuda(const Snapshot& snapshot);
std::string needs_no_nvcc(const Snapshot& snapshot);  // or there is none, which is another check's matter
std::string builds_no_python_module(const Snapshot& snapshot);

Evidence source_evidence(const std::string& list, std::size_t i, std::string value);
std::string place(const SourceFact& fact);  // "setup.py:12"
// "CUDA_HOME=... pip install --no-build-isolation FOLDER", for this environment.
std::string build_command(const Snapshot& snapshot, const std::string& variables = "");
// `otherwise`, then the scankit module, which needs no build, where the folder builds that.
std::vector<Fix> build_fixes(const Snapshot& snapshot, Fix otherwise);
std::string toolkit_advice(const Snapshot& snapshot, const std::string& version);
// CUDA_HOME of an installed toolkit of that version's major, as a fix with its evidence; else the advice.
Fix toolkit_fix(const Snapshot& snapshot, const std::string& version, std::vector<Evidence>& evidence);
std::string major_of(const std::string& version);
std::string dotted(const std::string& arch);  // "120" -> "12.0"
std::string word_for_shell(const std::string& word);

}  // namespace scankit
