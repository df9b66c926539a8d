// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "builder/installer/installer.h"
#include "envspec/lock/lock.h"

// Finds out what file each installed distribution can be installed from again. Asked in this
// order: the records next to it, an older lock, the user's index, and, for what was built locally,
// its installed files.
namespace scankit {

struct ResolveRequest {
  Installer installer;                     // Kind::None: no index is asked
  std::optional<Installer> second;         // asked for what the first does not have, or cannot reach
  const EnvironmentLock* older = nullptr;  // what it knows of the same versions is not asked again
  bool offline = false;
  std::chrono::seconds node_deadline{120};
  std::function<void(const std::string& phase)> progress;
  std::function<void(std::size_t done, std::size_t of)> part;
};
// Fills artifact, source or why_no_artifact of every distribution in `lock`. Returns notes for people.
std::vector<std::string> resolve_artifacts(const Host& host, const Snapshot& snapshot,
                                           const ResolveRequest& request, EnvironmentLock& lock);

}  // namespace scankit
