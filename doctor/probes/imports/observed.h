// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "doctor/model/snapshot.h"

namespace scankit {

class Host;

enum class ImportPolicy {
  Never,        // --no-import: files only
  IfOursToRun,  // not as root on files of another user: running somebody else's Python is running their code
  Always        // --import
};

struct ObserveRequest {
  ImportPolicy policy = ImportPolicy::IfOursToRun;
  std::chrono::milliseconds timeout{60000};                       // of each child
  std::optional<std::chrono::steady_clock::time_point> deadline;  // of all of them, by --budget
  bool can_be_asked_for = true;                                   // the command has --import
  // What is imported just now, since when, and after how long it is given up: the longest of those that run.
  // From any thread, never two at once; may be empty.
  std::function<void(const std::string& sentence, std::chrono::steady_clock::time_point since,
                     std::chrono::milliseconds limit)>
      running;
};

// Imports torch and every module under diagnosis for real, each in a child of its own: a crash, a hang or
// noise is a fact about the module. NotRun where the policy forbids it, Failed where the interpreter cannot
// be started.
Probed<std::vector<Observation>> observe_imports(const Host& host, const Snapshot& so_far,
                                                 const ObserveRequest& request);

// Really loads each file of the audit that the static pass says would fail, in a child of its own, after
// torch and the file's own package: packages find libraries for their extensions in ways that no table of the
// file shows. What loads is no longer missing anything; a file that fails keeps what the static pass found.
// Nothing is tried that the request's deadline leaves no time for. Only where imports are allowed.
void try_suspects(Snapshot& snapshot, const ObserveRequest& request);

}  // namespace scankit
