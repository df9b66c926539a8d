// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "envspec/create/create.h"

// What `scankit env sync` changes in an environment, found before anything is changed.
namespace scankit::envspec {

struct Change {
  // Missing, of another version, or with other compiled files than the lock says:
  std::vector<const LockedDistribution*> install;  // from a file of the lock
  std::vector<SourceBuild> build;                  // built again, since no wheel of theirs can be had
  // Built from the lock's archive by an earlier create or sync, and unchanged since. Another build of it would differ
  // from the lock in the same way, so that each sync would build it once more.
  std::vector<SourceBuild> kept;
  std::vector<std::string> remove;   // not in the lock; names that a command line can hold
  std::vector<std::string> removed;  // the same with their versions, for people
  bool empty() const { return install.empty() && build.empty() && remove.empty(); }
};

// `folders`: where wheels and archives may be that no index has. An Error: a compiled file that no package brings
// back, a package whose name is no name, or what is in none of the folders (find_wheels).
Result<Change> change_of(const Subject& subject, const EnvironmentLock& lock,
                         const std::vector<std::string>& folders, bool offline);

}  // namespace scankit::envspec
