// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "doctor/model/snapshot.h"

// Facts about what a run was to look at. They are kept among the snapshot's variables, below names that no
// shell can set, so that a stored snapshot carries them and an older scankit still reads it.
namespace scankit {

// What --require, or the policy, demands of the environment.
struct Requirement {
  std::string name;   // of a module or a distribution, as the user wrote it
  std::string found;  // "module", "distribution", "absent"; "not-read" where nobody could look
  std::string path;   // of the file or folder that it is; of an absent one: what is there in its place
};
inline constexpr const char* kRequired = "scankit.required";
void set_requirements(Snapshot& snapshot, const std::vector<Requirement>& required);
std::vector<Requirement> requirements(const Snapshot& snapshot);

// The audit covers only the extensions that link torch or CUDA: what doctor looks at unless told more.
void set_audit_of_linked(Snapshot& snapshot);
bool audit_of_linked(const Snapshot& snapshot);

// Neither PyTorch nor a compiled extension that links it or CUDA is in the environment: whatever was asked of
// them is not answered. False where something else was looked at: a log, named files, a named folder of
// sources, what was required.
bool nothing_to_check(const Snapshot& snapshot);

}  // namespace scankit
