// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/base/result.h"
#include "envspec/lock/lock.h"

// A lock in the words of other tools. Pure functions: the same lock, the same bytes. The values of a lock are
// of forms that cannot end a line or a quotation (lock_drift.h).
namespace scankit {

inline constexpr const char* kWheelFolder = "scankit-wheels";  // beside the export: what was built here

struct Exported {
  std::string file_name;  // "requirements.txt"
  std::string text;
  std::vector<std::string> left_out;  // "name==version: why", of what nothing can install again
  bool needs_requirements = false;    // beside it: a Dockerfile
};
Result<Exported> export_lock(const EnvironmentLock& lock, const std::string& format);

Exported export_requirements(const EnvironmentLock& lock);
Exported export_pylock(const EnvironmentLock& lock);
Exported export_conda(const EnvironmentLock& lock);
Exported export_dockerfile(const EnvironmentLock& lock);

// What an installer of wheels has to bring, and what it cannot.
struct Installable {
  std::vector<const LockedDistribution*> with_hash;
  std::vector<std::string> left_out;
};
Installable installable(const EnvironmentLock& lock);
std::vector<const LockedDistribution*> built_here(const EnvironmentLock& lock);
// What stands at the top of every export, without the comment sign.
std::vector<std::string> header_lines(const EnvironmentLock& lock);

}  // namespace scankit
